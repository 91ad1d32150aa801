"""W30-W32: watchers are sent only what they may read, at the event and at every retry; nobody replays another's
delivery.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts import own_account
from hubgate.server.accounts import store as accounts_store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def logs_of(client: httpx.Client, webhook: dict[str, str], path: str = PATH) -> list[tuple[str, str, str | None]]:
    """Repo, state and reason."""
    logs = client.get(f"{path}/{webhook['id']}/logs").json()
    return sorted((log["repo"]["name"], log["state"], log.get("reason")) for log in logs)


def leave(hub: RunningHub, organization: Organization, user: User) -> None:
    async def work(opened: Hub) -> None:
        await members.remove(opened.accounts, organization, user, SYSTEM)

    hub.call(work)


@pytest.mark.one_engine
def test_w30_events_are_sent_only_to_watchers_who_may_read_the_repo(hub: RunningHub, receiver: Receiver) -> None:
    """A stranger watches the user, the organization and the repo itself, before and after its creation."""
    ada, bob, eve = (create_user(hub, name) for name in ("ada", "bob", "eve"))
    create_organization(hub, "acme", ada, bob="read")
    watched = ("user:ada", "org:acme", "model:ada/secret", "model:acme/secret", "dataset:acme/secret")
    tokens = [create_token(hub, user) for user in (ada, bob, eve)]
    with api(hub, tokens[0]) as owner, api(hub, tokens[1]) as member, api(hub, tokens[2]) as stranger:
        early = create_webhook(stranger, receiver.url, *watched)
        of_member = create_webhook(member, receiver.url, *watched)
        path = "/api/organizations/acme/settings/webhooks"
        body = {"url": receiver.url, "watched": [{"type": "user", "name": "ada"}, {"type": "org", "name": "acme"}]}
        of_acme = owner.post(path, json=body).json()["webhook"]
        create_repo(owner, "secret", private=True)
        create_repo(owner, "acme/secret", private=True)
        create_repo(owner, "acme/secret", "dataset", private=True)
        late = create_webhook(stranger, receiver.url, *watched)
        create_commit(owner, "acme/secret", {"a.txt": b"a"})
        create_repo(owner, "open")
        settle(hub)
        assert [logs_of(stranger, one) for one in (early, late)] == [[("ada/open", "delivered", None)]] * 2
        inside = [("acme/secret", "delivered", None)] * 3 + [("ada/open", "delivered", None)]
        assert logs_of(member, of_member) == inside
        # The organization's webhook reads as the organization: not what its admin may read elsewhere.
        assert logs_of(owner, of_acme, path) == inside
    told = {(one.headers["x-hubgate-webhook"], one.json["repo"]["name"]) for one in receiver.received}
    strangers = {name for webhook, name in told if webhook in (early["id"], late["id"])}
    assert strangers == {"ada/open"}


@pytest.mark.one_engine
def test_w30_watching_does_not_reveal_private_repos(hub: RunningHub) -> None:
    """A private repo's spelling, its later names and its new place are not revealed."""
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as owner,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        create_repo(owner, "Secret", private=True)
        create_repo(owner, "Open")
        given = ["model:ADA/SECRET", "model:ada/nothing", "model:ada/open"]
        webhook = create_webhook(eve, "https://ci.example/", *given)
        asked = {"fromRepo": "ada/Secret", "toRepo": "ada/Project-X", "type": "model"}
        assert owner.post("/api/repos/move", json=asked).status_code == 200
        asked = {"fromRepo": "ada/Open", "toRepo": "ada/Opened", "type": "model"}
        assert owner.post("/api/repos/move", json=asked).status_code == 200
        for found in (eve.get(PATH).json()[0], eve.get(f"{PATH}/{webhook['id']}").json()["webhook"]):
            assert [watch["name"] for watch in found["watched"]] == ["ADA/SECRET", "ada/nothing", "ada/Opened"]
        mine = create_webhook(owner, "https://ci.example/", "model:ada/secret")
        assert mine["watched"] == [{"type": "model", "name": "ada/Project-X"}]


@pytest.mark.one_engine
def test_w30_move_of_a_public_repo_is_reported_to_watchers_of_its_new_owner(
    hub: RunningHub, receiver: Receiver
) -> None:
    """A private repo's former name is not revealed to watchers of its new owner."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        create_webhook(eve, receiver.url, "org:acme")
        for name, private in (("open", False), ("secret", True)):
            create_repo(owner, name, private=private)
            asked = {"fromRepo": f"ada/{name}", "toRepo": f"acme/{name}", "type": "model"}
            assert owner.post("/api/repos/move", json=asked).status_code == 200
        settle(hub)
    (told,) = [received.json for received in receiver.received]
    assert (told["event"]["action"], told["movedTo"]["name"]) == ("move", "acme/open")


@pytest.mark.one_engine
def test_w30_test_delivery_reveals_nothing_private(hub: RunningHub, receiver: Receiver) -> None:
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as owner,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        create_repo(owner, "Secret", private=True)
        webhooks = [create_webhook(eve, receiver.url, one) for one in ("user:ada", "model:ada/secret")]
        with deliver_in_background(hub):
            answers = [eve.post(f"{PATH}/{webhook['id']}/test") for webhook in webhooks]
        assert [answer.json()["status"] for answer in answers] == [200, 200]
    assert [one.json["repo"]["name"] for one in receiver.received] == ["ada/example", "ada/secret"]
    assert all(one.json["repo"]["id"] == "0" * 24 for one in receiver.received)
    assert all(b"Secret" not in one.body for one in receiver.received)


def test_w30_test_delivery_uses_a_public_repo_behind_many_private_ones(hub: RunningHub, receiver: Receiver) -> None:
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as owner,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        create_repo(owner, "open")
        for number in range(21):
            hub.clock.advance(1)
            create_repo(owner, f"secret{number}", private=True)
        settle(hub)
        webhook = create_webhook(eve, receiver.url, "user:ada")
        with deliver_in_background(hub):
            assert eve.post(f"{PATH}/{webhook['id']}/test").json()["status"] == 200
    assert [one.json["repo"]["name"] for one in receiver.received] == ["ada/open"]


@pytest.mark.one_engine
def test_w30_events_of_a_private_repo_stay_private_after_publication(hub: RunningHub, receiver: Receiver) -> None:
    """The fan-out is delayed until the repo is public."""
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as owner,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        theirs, mine = (create_webhook(one, receiver.url, "user:ada") for one in (eve, owner))
        create_repo(owner, "tiny", private=True)
        asked = {"fromRepo": "ada/tiny", "toRepo": "ada/project-x", "type": "model"}
        assert owner.post("/api/repos/move", json=asked).status_code == 200
        assert owner.put("/api/models/ada/project-x/settings", json={"private": False}).status_code == 200
        create_commit(owner, "ada/project-x", {"a.txt": b"a"})
        settle(hub)
        told = [one.kind for one in receiver.received if one.headers["x-hubgate-webhook"] == theirs["id"]]
        assert told == ["repo.config update", "repo.content update"]
        assert len(logs_of(owner, mine)) == 4


@pytest.mark.one_engine
def test_w30_event_of_a_deleted_repo_uses_its_last_visibility(hub: RunningHub, receiver: Receiver) -> None:
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as owner,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        theirs, mine = (create_webhook(one, receiver.url, "user:ada") for one in (eve, owner))
        for name, private in (("secret", True), ("open", False)):
            create_repo(owner, name, private=private)
            assert owner.request("DELETE", "/api/repos/delete", json={"name": name}).status_code == 200
        settle(hub)
        assert [name for name, *_ in logs_of(eve, theirs)] == ["ada/open", "ada/open"]
        assert sorted(name for name, *_ in logs_of(owner, mine)) == ["ada/open"] * 2 + ["ada/secret"] * 2


Losing = Callable[[RunningHub, httpx.Client, Organization, User], None]


def lose_membership(hub: RunningHub, _: httpx.Client, acme: Organization, bob: User) -> None:
    leave(hub, acme, bob)


def make_private(_: RunningHub, owner: httpx.Client, __: Organization, ___: User) -> None:
    assert owner.put("/api/models/acme/tiny/settings", json={"private": True}).status_code == 200


def move_away(_: RunningHub, owner: httpx.Client, __: Organization, ___: User) -> None:
    asked = {"fromRepo": "acme/tiny", "toRepo": "ada/tiny", "type": "model"}
    assert owner.post("/api/repos/move", json=asked).status_code == 200


def disable_user(hub: RunningHub, _: httpx.Client, __: Organization, bob: User) -> None:
    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: accounts_store.set_disabled(tx, bob.id, opened.clock()))

    hub.call(work)


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("private", "member", "lose"),
    [
        (True, True, lose_membership),
        (False, False, make_private),
        (True, True, move_away),
        (False, False, disable_user),
    ],
    ids=["left", "made private", "moved", "disabled"],
)
def test_w31_retry_is_not_sent_after_the_permission_is_lost(
    hub: RunningHub, receiver: Receiver, private: bool, member: bool, lose: Losing
) -> None:
    receiver.status = 503
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, **({"bob": "read"} if member else {}))
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as watcher:
        webhook = create_webhook(watcher, receiver.url, "org:acme")
        create_repo(owner, "acme/tiny", private=private)
        settle(hub)
        assert logs_of(watcher, webhook) == [("acme/tiny", "retrying", None)]
        lose(hub, owner, acme, bob)
        receiver.status = 200
        hub.clock.advance(7)
        settle(hub)
        assert len(receiver.received) == 1, "nothing more was sent"
        if lose is disable_user:
            return
        # Later events are not sent either.
        assert logs_of(watcher, webhook) == [("acme/tiny", "skipped", "forbidden")]
        (log,) = watcher.get(f"{PATH}/{webhook['id']}/logs").json()
        refused = watcher.post(f"{PATH}/{webhook['id']}/replay/{log['id']}")
        assert refused.status_code == 403, "and a replay asks again"


@pytest.mark.one_engine
def test_w31_former_admin_loses_the_organizations_webhooks(hub: RunningHub, receiver: Receiver) -> None:
    """A webhook that an admin created stays the organization's: it continues, out of reach of the former admin."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="admin")
    path = "/api/organizations/acme/settings/webhooks"
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as former:
        body = {"url": receiver.url, "watched": [{"type": "org", "name": "acme"}], "secret": "s"}
        webhook = former.post(path, json=body).json()["webhook"]
        create_repo(owner, "acme/tiny", private=True)
        settle(hub)
        (log,) = former.get(f"{path}/{webhook['id']}/logs").json()

        async def demote(opened: Hub) -> None:
            await members.change_role(opened.accounts, acme, bob, Role.WRITE, SYSTEM)

        hub.call(demote)
        at = f"{path}/{webhook['id']}"
        tails = [
            ("GET", ""),
            ("POST", ""),
            ("DELETE", ""),
            ("POST", "/test"),
            ("POST", "/enable"),
            ("POST", "/disable"),
        ]
        tails += [("GET", "/logs"), ("GET", f"/logs/{log['id']}"), ("POST", f"/replay/{log['id']}")]
        for method, tail in tails:
            answer = former.request(method, at + tail, json={} if method == "POST" else None)
            assert answer.status_code == 403, (method, tail)
            assert webhook["secret"] != answer.json().get("secret")
        assert former.get(path).status_code == 403
        leave(hub, acme, bob)
        create_repo(owner, "acme/next", private=True)
        settle(hub)
        assert [one.json["repo"]["name"] for one in receiver.received] == ["acme/tiny", "acme/next"]


@pytest.mark.one_engine
def test_w32_another_users_delivery_is_not_found(hub: RunningHub, receiver: Receiver) -> None:
    """By its own webhook's URL and by one's own: as if it did not exist."""
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        hers, mine = create_webhook(ada, receiver.url, "user:ada"), create_webhook(eve, receiver.url, "user:eve")
        create_repo(ada, "tiny", private=True)
        settle(hub)
        (log,) = ada.get(f"{PATH}/{hers['id']}/logs").json()
        for webhook in (hers, mine):
            for delivery in (log["id"], "0" * 24, log["event"]["id"], "x", f"{log['id']}%20"):
                for method, tail in (("POST", f"replay/{delivery}"), ("GET", f"logs/{delivery}")):
                    answer = eve.request(method, f"{PATH}/{webhook['id']}/{tail}")
                    assert answer.status_code == 404, (tail, answer.text)
                    assert "tiny" not in answer.text
        settle(hub)
    assert len(receiver.received) == 1


@pytest.mark.one_engine
def test_w32_watched_name_stays_bound_to_its_first_owner(hub: RunningHub, receiver: Receiver) -> None:
    """A name watched before it exists binds to its first owner, through renames; a later owner of the name is not
    watched.
    """
    eve = create_user(hub, "eve")
    with api(hub, create_token(hub, eve)) as watcher:
        webhook = create_webhook(watcher, receiver.url, "user:later", "model:first/tiny", "org:later")
        later, first = create_user(hub, "later"), create_user(hub, "first")
        with api(hub, create_token(hub, first)) as owner:
            create_repo(owner, "tiny")
            hub.clock.advance(1)
            assert owner.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
            hub.clock.advance(1)
            create_repo(owner, "tiny")
        hub.clock.advance(24 * 3600)
        rename(hub, later, "later-on")
        with api(hub, create_token(hub, later)) as owner:
            create_repo(owner, "mine")
        settle(hub)
        names = [(one.kind, one.json["repo"]["name"]) for one in receiver.received]
        assert sorted(names) == [
            ("repo create", "first/tiny"),
            ("repo create", "later-on/mine"),
            ("repo delete", "first/tiny"),
        ]
        watched = watcher.get(f"{PATH}/{webhook['id']}").json()["webhook"]["watched"]
        assert [watch["name"] for watch in watched] == ["later-on", "first/tiny", "later"]


def rename(hub: RunningHub, user: User, name: str) -> None:
    hub.call(lambda opened: own_account.rename(opened.accounts, user, name))
