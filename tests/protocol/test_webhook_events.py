"""Events of a webhook by number, pulled in pages."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.bed.app_webhooks import AppWebhookScenario
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, logs, run_receiver, settle

from hubgate.server.clock import SECOND
from hubgate.server.resources import Hub
from hubgate.server.webhooks.retention.deletion import Retention

PATH = "/api/settings/webhooks"
DAY_SECONDS = 24 * 3600


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    url = engine.fresh_url()
    flags = {"egress_allow": "127.0.0.0/8", "delivery_retention_days": "1", "webhook_quota": "8"}
    with run_hub(settings_for(url, tmp_path, **flags)) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def pull_webhook(client: httpx.Client, *watched: str, path: str = PATH, **more: Any) -> dict[str, Any]:
    watches = [dict(zip(("type", "name"), text.split(":"), strict=True)) for text in watched]
    created: dict[str, Any] = client.post(path, json={"pull": True, "watched": watches, **more}).json()["webhook"]
    assert created["pull"] is True
    assert "url" not in created
    return created


def page(client: httpx.Client, webhook: dict[str, Any], path: str = PATH, **query: Any) -> dict[str, Any]:
    answer = client.get(f"{path}/{webhook['id']}/events", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def kinds(found: dict[str, Any]) -> list[str]:
    events = [json.loads(event["body"])["event"] for event in found["events"]]
    return [f"{event['scope']} {event['action']}" for event in events]


def change_repo(client: httpx.Client, repo: str, times: int = 1) -> None:
    for _ in range(times):
        create_commit(client, repo, {"a.txt": secrets.token_bytes(8)})


def test_events_are_pulled_in_order_by_cursor(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    assert page(ada, webhook) == page(ada, webhook, after=0) == {"events": [], "cursor": 0}
    create_repo(ada, "tiny")
    change_repo(ada, "ada/tiny")
    assert ada.put("/api/models/ada/tiny/settings", json={"private": True}).status_code == 200
    settle(hub)
    everything = page(ada, webhook)
    assert kinds(everything) == ["repo create", "repo.content update", "repo.config update"]
    assert [event["cursor"] for event in everything["events"]] == [1, 2, 3]
    assert everything["cursor"] == 3
    assert page(ada, webhook, after=0) == everything
    first = page(ada, webhook, after=0, limit=2)
    assert (first["events"], first["cursor"]) == (everything["events"][:2], 2)
    assert page(ada, webhook, after=2)["events"] == everything["events"][2:]
    assert page(ada, webhook, after=3) == page(ada, webhook, after="latest") == {"events": [], "cursor": 3}
    (replayed,) = logs(ada, webhook)[:1]
    assert ada.post(f"{PATH}/{webhook['id']}/replay/{replayed['id']}").status_code == 200
    again = page(ada, webhook, after=3)["events"][0]
    assert (again["cursor"], again["body"]) == (4, everything["events"][2]["body"])
    assert again["id"] != replayed["id"]


@pytest.mark.one_engine
def test_pulled_event_is_the_delivered_request(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    """The same body and headers, but signed when it is read, and without the secret itself (attack O74)."""
    webhook = create_webhook(ada, receiver.url, "user:ada", secret="s3cret")
    create_repo(ada, "tiny")
    settle(hub)
    (sent,) = receiver.received
    hub.clock.advance(60)
    (event,) = page(ada, webhook)["events"]
    assert set(event) == {"cursor", "id", "headers", "body"}
    assert event["body"].encode() == sent.body
    headers = {name.lower(): value for name, value in event["headers"].items()}
    signed_later = {"webhook-timestamp", "webhook-signature"}
    own = {"host", "content-length", "connection", "accept-encoding", "x-webhook-secret"}
    assert {name: sent.headers[name] for name in sent.headers if name not in own | signed_later} == {
        name: headers[name] for name in headers if name not in signed_later
    }
    assert sent.headers["x-webhook-secret"] == "s3cret"
    assert headers["webhook-timestamp"] == str(hub.clock() // SECOND)
    assert int(headers["webhook-timestamp"]) - int(sent.headers["webhook-timestamp"]) >= 60
    content = f"{event['id']}.{headers['webhook-timestamp']}.".encode() + sent.body
    expected = base64.b64encode(hmac.digest(b"s3cret", content, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert "s3cret" not in ada.get(f"{PATH}/{webhook['id']}/events").text


@pytest.mark.one_engine
def test_rotated_secret_and_key_sign_pulled_events(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    (event,) = page(ada, webhook)["events"]
    signature = event["headers"]["webhook-signature"]
    content = f"{event['id']}.{event['headers']['webhook-timestamp']}.{event['body']}".encode()
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(webhook["publicKey"].removeprefix("whpk_")))
    key.verify(base64.b64decode(signature.removeprefix("v1a,")), content)
    at = f"{PATH}/{webhook['id']}"
    assert ada.post(at, json={"secret": "old"}).status_code == 200
    assert ada.post(at, json={"secret": "new", "overlapSeconds": 60}).status_code == 200
    (event,) = page(ada, webhook)["events"]
    assert [each[:3] for each in event["headers"]["webhook-signature"].split()] == ["v1,", "v1,"]
    hub.clock.advance(61)
    (event,) = page(ada, webhook)["events"]
    assert len(event["headers"]["webhook-signature"].split()) == 1


@pytest.mark.one_engine
def test_skipped_and_forbidden_events_have_no_content(hub: RunningHub, ada: httpx.Client) -> None:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
        webhook = pull_webhook(ada, "user:bob")
        create_repo(bob, "hidden")
        settle(hub)
        assert kinds(page(ada, webhook)) == ["repo create"]
        assert ada.post(f"{PATH}/{webhook['id']}/disable").status_code == 200
        change_repo(bob, "bob/hidden")
        settle(hub)
        assert ada.post(f"{PATH}/{webhook['id']}/enable").status_code == 200
        create_repo(bob, "open")
        change_repo(bob, "bob/open", times=7)
        settle(hub)
        assert bob.put("/api/models/bob/hidden/settings", json={"private": True}).status_code == 200
        found = page(ada, webhook)
        shown = [event.get("skipped", "shown") for event in found["events"]]
        assert shown == ["forbidden", "disabled", *["shown"] * 7, "quota"]
        for event in found["events"]:
            assert set(event) == (
                {"cursor", "id", "skipped"} if "skipped" in event else {"cursor", "id", "headers", "body"}
            )
        assert [event["cursor"] for event in found["events"]] == list(range(1, 11))
        assert bob.get(f"{PATH}/{webhook['id']}/events").status_code == 404


def test_cursor_of_expired_events_is_gone(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = pull_webhook(ada, "user:ada")
    at = f"{PATH}/{webhook['id']}/events"

    async def sweep(opened: Hub) -> None:
        while await Retention(opened.webhooks, opened.settings.delivery_retention_days).step():
            pass

    create_repo(ada, "tiny")
    change_repo(ada, "ada/tiny")
    settle(hub)
    hub.clock.advance(DAY_SECONDS - 60)
    change_repo(ada, "ada/tiny", times=2)
    settle(hub)
    hub.clock.advance(120)
    hub.call(sweep)
    for after in (0, 1):
        gone = ada.get(at, params={"after": after})
        assert (gone.status_code, gone.json()["oldest"]) == (410, 3)
        assert gone.json()["error"].startswith(f"Events after number {after} are no longer stored.")
        streamed = ada.get(at, params={"after": after}, headers={"accept": "text/event-stream"})
        assert (streamed.status_code, streamed.json()["oldest"]) == (410, 3)
    assert [event["cursor"] for event in page(ada, webhook, after=2)["events"]] == [3, 4]
    assert [event["cursor"] for event in page(ada, webhook)["events"]] == [3, 4]
    hub.clock.advance(2 * DAY_SECONDS)
    hub.call(sweep)
    assert ada.get(at, params={"after": 3}).json()["oldest"] == 5
    assert page(ada, webhook, after=4) == page(ada, webhook) == {"events": [], "cursor": 4}


@pytest.mark.one_engine
def test_gap_in_retained_events_is_reported(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    """A delivery that is retried for longer than the retention outlives later ones."""
    webhook = create_webhook(ada, receiver.url, "user:ada")
    receiver.status = 500
    create_repo(ada, "tiny")
    settle(hub)
    receiver.status = 200
    change_repo(ada, "ada/tiny", times=2)
    settle(hub)
    hub.clock.advance(DAY_SECONDS + 60)
    change_repo(ada, "ada/tiny")

    async def sweep(opened: Hub) -> None:
        await Retention(opened.webhooks, opened.settings.delivery_retention_days).step()

    hub.call(sweep)
    settle(hub)
    found = page(ada, webhook, after=0)
    assert ([event["cursor"] for event in found["events"]], found["cursor"]) == ([1], 1)
    gone = ada.get(f"{PATH}/{webhook['id']}/events", params={"after": 1})
    assert (gone.status_code, gone.json()["oldest"]) == (410, 4)


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"after": "-1"}, 400),
        ({"after": "x"}, 400),
        ({"after": "9" * 30}, 400),
        ({"after": "1"}, 422),
        ({"limit": "0"}, 400),
        ({"limit": "100000"}, 200),
    ],
)
def test_invalid_cursors_and_limits_are_rejected(ada: httpx.Client, query: dict[str, str], status: int) -> None:
    webhook = pull_webhook(ada, "user:ada")
    assert ada.get(f"{PATH}/{webhook['id']}/events", params=query).status_code == status


def test_large_page_is_cut(hub: RunningHub, ada: httpx.Client) -> None:
    """At most four megabytes of bodies in a page."""
    webhook = pull_webhook(ada, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)

    async def enlarge(opened: Hub) -> None:
        row = await opened.db.one("SELECT body FROM events")
        assert row is not None
        body = row["body"][:-1] + b',"filler":"' + b"x" * (3 * 1024 * 1024) + b'"}'
        await opened.db.write(lambda tx: tx.exec("UPDATE events SET body = :body", {"body": body}))

    hub.call(enlarge)
    (logged,) = logs(ada, webhook)
    for _ in range(2):
        assert ada.post(f"{PATH}/{webhook['id']}/replay/{logged['id']}").status_code == 200
    cursors = []
    found = page(ada, webhook, after=0)
    while found["events"]:
        cursors.append([event["cursor"] for event in found["events"]])
        found = page(ada, webhook, after=found["cursor"])
    assert cursors == [[1], [2], [3]]


@pytest.mark.one_engine
def test_organizations_events_are_for_its_admins(hub: RunningHub) -> None:
    bob = create_user(hub, "bob")
    with api(hub, create_token(hub, create_user(hub, "olga"))) as olga, api(hub, create_token(hub, bob)) as member:
        create_organization(hub, "acme", create_user(hub, "ann"), olga="admin", bob="write")
        path = "/api/organizations/acme/settings/webhooks"
        webhook = pull_webhook(olga, "org:acme", path=path)
        create_repo(olga, "acme/rows", private=True)
        settle(hub)
        assert kinds(page(olga, webhook, path)) == ["repo create"]
        assert member.get(f"{path}/{webhook['id']}/events").status_code == 403
        assert olga.get(f"{PATH}/{webhook['id']}/events").status_code == 404


def test_app_reads_what_it_may_see_of_its_own_webhooks(hub: RunningHub) -> None:
    stage = AppWebhookScenario(hub)
    with api(hub, stage.token) as owner:
        of_owner = pull_webhook(owner, "user:ada")
    with api(hub, stage.grant("openid webhooks read-repos")) as app:
        webhook = pull_webhook(app, "user:ada")
        with api(hub, stage.token) as owner:
            for repo in ("ada/secret", "ada/open"):
                change_repo(owner, repo)
                settle(hub)
        assert [event.get("skipped") for event in page(app, webhook)["events"]] == [None, None]
        refused = app.get(f"{PATH}/{of_owner['id']}/events")
        assert (refused.status_code, "did not create" in refused.json()["error"]) == (403, True)
    with api(hub, stage.grant("openid webhooks")) as narrowed:
        assert [event.get("skipped") for event in page(narrowed, webhook)["events"]] == ["forbidden", None]
