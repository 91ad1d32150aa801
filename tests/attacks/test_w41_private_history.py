"""W41: an app that takes a webhook over does not learn what happened while a repo was private, even if public now.

Neither from logs and payloads, nor by replays, nor from waiting deliveries.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import approve, create_app, redirect_parameters
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.replays import run_replays
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts.model import Organization, User

PATH = "/api/settings/webhooks"
SECRET_NAME, PUBLIC_NAME = "ada/codename-zeus", "ada/product"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """The user's own receiver."""
    with run_receiver() as started:
        yield started


@pytest.fixture
def evil() -> Iterator[Receiver]:
    """The app's receiver."""
    with run_receiver() as started:
        yield started


def granted(hub: RunningHub, user: User, *scopes: str, orgs: tuple[Organization, ...] = ()) -> str:
    client = create_app(hub, create_user(hub, "olga"), scopes=("openid", *scopes))
    with browser_of(hub, user) as browser:
        sent = approve(browser, client.address(prompt="consent"), orgs=[org.id for org in orgs])
    token: str = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
    return token


def publish(owner: httpx.Client, old: str = SECRET_NAME, new: str = PUBLIC_NAME) -> None:
    """Under another name, with the former one unlinked."""
    moved = owner.post("/api/repos/move", json={"fromRepo": old, "toRepo": new})
    assert moved.status_code == 200, moved.text
    namespace, _, name = old.partition("/")
    at = "/api/settings" if namespace == "ada" else f"/api/organizations/{namespace}/settings"
    assert owner.delete(f"{at}/redirects/model/{name}").status_code == 204
    shown = owner.put(f"/api/models/{new}/settings", json={"private": False})
    assert shown.status_code == 200, shown.text


def logs(client: httpx.Client, at: str) -> list[dict[str, Any]]:
    answer = client.get(f"{at}/logs")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def names(receiver: Receiver) -> set[str]:
    return {one.json["repo"]["name"] for one in receiver.received}


@pytest.mark.one_engine
def test_w41_private_history_is_hidden_from_an_app(hub: RunningHub, receiver: Receiver, evil: Receiver) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'user:ada')['id']}"
        create_commit(owner, SECRET_NAME, {"secret.txt": b"1"})
        settle(hub)
        with deliver_in_background(hub):
            assert owner.post(f"{at}/test").json()["status"] == 200
        publish(owner)
        create_commit(owner, PUBLIC_NAME, {"news.txt": b"1"})
        settle(hub)
        hub.clock.advance(1)
        everything = {one["id"]: one for one in logs(owner, at)}
        with api(hub, granted(hub, ada, "webhooks")) as app:
            assert app.post(at, json={"url": evil.url}).status_code == 200
            shown = {one["id"] for one in logs(app, at)}
            assert {everything[one]["repo"]["name"] for one in shown} == {PUBLIC_NAME}
            assert len(shown) == 2, "that it is public, and a commit since then"
            hidden = everything.keys() - shown
            assert len(hidden) == 3, "a commit, a test and the move"
            for one in hidden:
                assert app.get(f"{at}/logs/{one}").status_code == 404
                assert app.post(f"{at}/replay/{one}").status_code == 404
                assert owner.post(f"{at}/replay/{one}").status_code == 403, "it would be sent to the app"
            assert {one["id"] for one in logs(owner, at)} == set(everything), "the user sees it as before"
            with deliver_in_background(hub):
                assert app.post(f"{at}/replay/{shown.pop()}").json()["status"] == 200
                assert app.post(f"{at}/test").json()["status"] == 200
            assert len(logs(app, at)) == 4, "its own replay and test are shown"
    assert names(evil) == {PUBLIC_NAME}
    assert b'"private":true' not in b"".join(one.body for one in evil.received)


def test_w41_app_that_may_read_private_repos_sees_their_history(
    hub: RunningHub, receiver: Receiver, evil: Receiver
) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'user:ada')['id']}"
        create_commit(owner, SECRET_NAME, {"secret.txt": b"1"})
        publish(owner)
        settle(hub)
        with api(hub, granted(hub, ada, "webhooks", "read-repos")) as app:
            assert app.post(at, json={"url": evil.url}).status_code == 200
            (first,) = [one for one in logs(app, at) if one["event"]["scope"] == "repo.content"]
            assert app.get(f"{at}/logs/{first['id']}").json()["payload"]["repo"]["name"] == SECRET_NAME
            with deliver_in_background(hub):
                assert app.post(f"{at}/replay/{first['id']}").json()["status"] == 200
    assert names(evil) == {SECRET_NAME}


@pytest.mark.one_engine
def test_w41_history_belongs_to_the_owner_at_that_time(hub: RunningHub, receiver: Receiver, evil: Receiver) -> None:
    """The app may read the user's private repos, but not those of the organization that this one was moved from."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "acme/codename-zeus", private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'org:acme', 'user:ada')['id']}"
        create_commit(owner, "acme/codename-zeus", {"secret.txt": b"1"})
        settle(hub)
        publish(owner, "acme/codename-zeus")
        settle(hub)
        with api(hub, granted(hub, ada, "webhooks", "read-repos")) as app:
            assert app.post(at, json={"url": evil.url}).status_code == 200
            assert {one["repo"]["name"] for one in logs(app, at)} == {PUBLIC_NAME}


@pytest.mark.parametrize("waits", ["event", "test"])
def test_w41_waiting_deliveries_of_a_private_repo_are_not_sent_to_the_app(
    hub: RunningHub, receiver: Receiver, evil: Receiver, waits: str
) -> None:
    ada = create_user(hub, "ada")
    receiver.status = 503
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'user:ada')['id']}"
        if waits == "event":
            create_commit(owner, SECRET_NAME, {"secret.txt": b"1"})
            settle(hub)
        else:
            with deliver_in_background(hub):
                assert owner.post(f"{at}/test").json()["status"] == 503
        assert names(receiver) == {SECRET_NAME}
        publish(owner)
        hub.clock.advance(1)
        with api(hub, granted(hub, ada, "webhooks")) as app:
            assert app.post(at, json={"url": evil.url}).status_code == 200
        for _ in range(3):
            hub.clock.advance(3600)
            settle(hub)
        assert SECRET_NAME not in names(evil)
        secret = [one["id"] for one in logs(owner, at) if one["repo"]["name"] == SECRET_NAME]
        assert owner.get(f"{at}/logs/{secret[-1]}").json()["reason"] == "forbidden"


@pytest.mark.one_engine
def test_w41_replay_on_the_page_does_not_send_private_history_to_the_app(
    hub: RunningHub, receiver: Receiver, evil: Receiver
) -> None:
    """A user who looks at old deliveries may not know where they would be sent now."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        webhook = create_webhook(owner, receiver.url, "user:ada")["id"]
        create_commit(owner, SECRET_NAME, {"secret.txt": b"1"})
        publish(owner)
        settle(hub)
        delivery = logs(owner, f"{PATH}/{webhook}")[-1]["id"]
    with api(hub, granted(hub, ada, "webhooks")) as app:
        assert app.post(f"{PATH}/{webhook}", json={"url": evil.url}).status_code == 200
    shown = f"/settings/webhooks/{webhook}/deliveries/{delivery}"
    with browser_of(hub, ada) as browser:
        assert browser.get(shown).status_code == 200
        submit(browser, shown, f"{shown}/replay")
    settle(hub)
    assert names(evil) == set()


def test_w41_replay_of_many_deliveries_leaves_private_history_out(
    hub: RunningHub, receiver: Receiver, evil: Receiver
) -> None:
    """Whether the app or the user starts it, and not even the number is revealed."""
    ada = create_user(hub, "ada")
    everything = {"since": "2000-01-01T00:00:00Z", "states": ["delivered"], "rate": 200}
    with api(hub, create_token(hub, ada)) as owner, api(hub, granted(hub, ada, "webhooks")) as app:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'user:ada')['id']}"
        create_commit(owner, SECRET_NAME, {"secret.txt": b"1"})
        settle(hub)
        (hidden,) = logs(owner, at)
        publish(owner)
        create_commit(owner, PUBLIC_NAME, {"news.txt": b"1"})
        settle(hub)
        for method, tail in (("POST", ""), ("GET", ""), ("GET", f"/{'0' * 24}"), ("DELETE", f"/{'0' * 24}")):
            answer = app.request(method, f"{at}/replays{tail}", json=everything if method == "POST" else None)
            assert answer.status_code == 403, "the app has not taken the webhook over"
        earlier = owner.post(f"{at}/replays", json=everything).json()
        run_replays(hub)
        hub.clock.advance(1)
        assert app.post(at, json={"url": evil.url}).status_code == 200
        assert app.get(f"{at}/replays").json() == []
        for method in ("GET", "DELETE"):
            assert app.request(method, f"{at}/replays/{earlier['id']}").status_code == 404
        assert app.post(f"{at}/replays", json={"deliveries": [hidden["id"]]}).status_code == 404
        assert owner.post(f"{at}/replays", json={"deliveries": [hidden["id"]]}).json()["total"] == 0
        for client in (app, owner):
            assert client.post(f"{at}/replays", json=everything).json()["total"] == 2
            hub.clock.advance(1)
        run_replays(hub)
        assert {one["state"] for one in app.get(f"{at}/replays").json()} == {"done"}
    assert (names(evil), len(evil.received)) == ({PUBLIC_NAME}, 4)
    assert b'"private":true' not in b"".join(one.body for one in evil.received)


@pytest.mark.one_engine
def test_w41_replay_from_before_the_takeover_does_not_send_private_tests(
    hub: RunningHub, receiver: Receiver, evil: Receiver
) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner, api(hub, granted(hub, ada, "webhooks")) as app:
        create_repo(owner, SECRET_NAME, private=True)
        settle(hub)
        at = f"{PATH}/{create_webhook(owner, receiver.url, 'user:ada')['id']}"
        with deliver_in_background(hub):
            assert owner.post(f"{at}/test").json()["status"] == 200
        (test,) = logs(owner, at)
        publish(owner)
        settle(hub)
        assert owner.post(f"{at}/replays", json={"deliveries": [test["id"]]}).json()["total"] == 1
        hub.clock.advance(1)
        assert app.post(at, json={"url": evil.url}).status_code == 200
        run_replays(hub)
    assert evil.received == []
