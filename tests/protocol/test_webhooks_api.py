"""The API of webhooks, field by field, for users and for organizations."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

PATH = "/api/settings/webhooks"
NOBODY = "0" * 24
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
WATCHED = [{"type": "user", "name": "ada"}]
URL = "https://ci.example/hook"


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhooks_per_owner="3")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


def made(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post(PATH, json={"url": URL, "watched": WATCHED, **body})
    assert answer.status_code == 200, answer.text
    webhook: dict[str, Any] = answer.json()["webhook"]
    return webhook


@pytest.mark.one_engine
def test_webhook_is_created_read_changed_and_deleted(ada: httpx.Client) -> None:
    webhook = made(ada, domains=["discussion", "repo"], secret="s3cret")
    assert set(webhook) == {
        "id",
        "url",
        "watched",
        "domains",
        "secret",
        "disabled",
        "status",
        "publicKey",
        "ordered",
        "createdAt",
        "hasSecret",
    }
    at = f"{PATH}/{webhook['id']}"
    assert re.fullmatch("[0-9a-f]{24}", webhook["id"])
    assert (webhook["url"], webhook["watched"]) == (URL, WATCHED)
    assert (webhook["disabled"], webhook["status"], webhook["ordered"]) == (False, "enabled", False)
    assert (webhook["domains"], webhook.pop("secret"), webhook["hasSecret"]) == (["repo", "discussion"], "s3cret", True)
    assert len(base64.b64decode(webhook["publicKey"].removeprefix("whpk_"))) == 32
    assert MOMENT.fullmatch(webhook["createdAt"])
    assert ada.get(PATH).json() == [webhook]
    assert ada.get(at).json() == {"webhook": webhook}
    # Missing keys and an empty `watched` change nothing.
    assert ada.post(at, json={"watched": []}).json() == {"webhook": webhook}
    assert ada.post(at, json={}).json() == {"webhook": webhook}
    changed = ada.post(
        at,
        json={
            "url": "http://hooks.example:8080/a?b=c",
            "watched": [{"type": "model", "name": "ada/Tiny"}, {"type": "org", "name": "nobody-yet"}],
            "domains": ["repo"],
            "secret": "",
            "ordered": True,
        },
    ).json()["webhook"]
    assert changed == {
        **webhook,
        "hasSecret": False,
        "url": "http://hooks.example:8080/a?b=c",
        "watched": [{"type": "model", "name": "ada/Tiny"}, {"type": "org", "name": "nobody-yet"}],
        "domains": ["repo"],
        "ordered": True,
    }
    assert ada.post(at, json={"secret": "again"}).json()["webhook"]["secret"] == "again"
    assert ada.post(at, json={"secret": None}).json() == {"webhook": changed}
    for deed, disabled, status in (("disable", True, "disabled"), ("enable", False, "enabled")):
        answer = ada.post(f"{at}/{deed}")
        assert (answer.status_code, answer.json()) == (
            200,
            {"webhook": {**changed, "disabled": disabled, "status": status}},
        )
    gone = ada.delete(at)
    assert (gone.status_code, gone.json(), ada.get(PATH).json()) == (200, {}, [])


@pytest.mark.one_engine
def test_webhooks_of_others_are_not_found(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = made(ada)
    tails = [
        ("GET", ""),
        ("POST", ""),
        ("DELETE", ""),
        ("POST", "/enable"),
        ("POST", "/disable"),
        ("POST", "/test"),
        ("GET", "/logs"),
        ("GET", f"/logs/{NOBODY}"),
        ("POST", f"/replay/{NOBODY}"),
    ]
    eve = create_user(hub, "eve")
    create_organization(hub, "acme", eve)
    with api(hub, create_token(hub, eve)) as stranger, api(hub) as visitor:
        for method, tail in tails:
            body = {"json": {}} if (method, tail) == ("POST", "") else {}
            for client, root, name, status in (
                (stranger, PATH, webhook["id"], 404),
                (stranger, "/api/organizations/acme/settings/webhooks", webhook["id"], 404),
                (ada, PATH, NOBODY, 404),
                (ada, PATH, "x", 404),
                (visitor, PATH, webhook["id"], 401),
                (ada, "/api/organizations/acme/settings/webhooks", webhook["id"], 403),
            ):
                answer = client.request(method, f"{root}/{name}{tail}", **body)
                assert (answer.status_code, bool(answer.json()["error"])) == (status, True), (method, root, tail)
        for tail in (f"/logs/{NOBODY}", "/logs/x"):
            assert ada.get(f"{PATH}/{webhook['id']}{tail}").json()["error"] == "Delivery not found."
        assert ada.post(f"{PATH}/{webhook['id']}/replay/{NOBODY}").status_code == 404


@pytest.mark.one_engine
def test_error_names_the_invalid_field(ada: httpx.Client) -> None:
    bad = [
        ({"url": None}, "url: Set either url or pull."),
        ({"pull": True}, "url: Set either url or pull."),
        ({"url": "ftp://ci.example/"}, "url: This address is not allowed: it must begin with http:// or https://."),
        (
            {"url": "https://ci.example/{x}"},
            "url: This address is not allowed: it contains {, which must be written %7B.",
        ),
        ({"url": "https://ci.example/a b"}, "url: This address is not allowed: it contains a space."),
        ({"url": "https://ci.example/ü"}, "url: This address is not allowed: it contains a character outside ASCII."),
        ({"url": "https://ci.example/\t"}, "url: This address is not allowed: it contains a control character."),
        ({"url": "https://" + "a" * 2048}, "url: This address is not allowed: it is longer than 2,048 characters."),
        ({"watched": []}, "watched: Name at least one user, organization or repo."),
        (
            {"watched": [{"type": "user", "name": f"u{n}"} for n in range(101)]},
            "watched: At most 100 names can be watched.",
        ),
        ({"watched": [{"type": "user", "name": "ada/tiny"}]}, "watched: A name of type user looks like ada."),
        ({"watched": [{"type": "model", "name": "ada"}]}, "watched: A name of type model looks like ada/tiny."),
        ({"domains": []}, "domains: Choose one or both of repo and discussion."),
        ({"domains": ["repo", "jobs"]}, "domains: Choose one or both of repo and discussion."),
        ({"secret": "a\nb"}, "secret: A secret is 1 to 256 printable ASCII characters, no space at either end."),
        ({"secret": "x" * 257}, "secret: A secret is 1 to 256 printable ASCII characters, no space at either end."),
        ({"job": {"image": "x"}, "url": None}, "job: this hub does not run jobs. Send a url."),
    ]
    for change, error in bad:
        answer = ada.post(PATH, json={"url": URL, "watched": WATCHED, **change})
        assert (answer.status_code, answer.json()["error"]) == (422, error)
    for body in ({}, {"url": URL}, {"url": 1, "watched": WATCHED}, {"url": URL, "watched": [{"type": "user"}]}, []):
        assert ada.post(PATH, json=body).status_code == 422
    assert ada.post(PATH, content=b"{", headers={"content-type": "application/json"}).status_code == 400
    assert ada.get(PATH).json() == []
    at = f"{PATH}/{made(ada)['id']}"
    for change, error in (
        ({"url": "https://u:p@ci.example/"}, "url: This address is not allowed: it contains a user name or password."),
        ({"url": URL, "pull": True}, "url: Set either url or pull."),
        ({"secret": "a", "overlapSeconds": 604801}, "overlapSeconds: Must be 0 to 604,800."),
        ({"secret": "a", "overlapSeconds": -1}, "overlapSeconds: Must be 0 to 604,800."),
        ({"domains": []}, "domains: Choose one or both of repo and discussion."),
    ):
        answer = ada.post(at, json=change)
        assert (answer.status_code, answer.json()["error"]) == (422, error)
    # Types that existing clients know, though no events exist for them here.
    watched = [{"type": kind, "name": "ada/x"} for kind in ("space", "dataset", "bucket", "kernel")]
    assert ada.post(at, json={"watched": watched}).json()["webhook"]["watched"] == watched
    assert ada.get(f"{at}/logs?state=odd").json()["error"].startswith("state: Choose a state: pending, retrying,")
    assert [ada.get(f"{at}/logs?{query}").status_code for query in ("state=odd", "limit=0", "cursor=x")] == [
        422,
        400,
        400,
    ]


def test_number_of_webhooks_is_limited(hub: RunningHub, ada: httpx.Client) -> None:
    for _ in range(3):
        made(ada)
    refused = ada.post(PATH, json={"url": URL, "watched": WATCHED})
    assert (refused.status_code, refused.json()["error"]) == (422, "At most 3 webhooks. Delete one first.")
    with api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
        made(bob)


@pytest.mark.one_engine
def test_pull_webhook_has_no_url(hub: RunningHub, ada: httpx.Client) -> None:
    webhook = ada.post(PATH, json={"pull": True, "watched": WATCHED}).json()["webhook"]
    assert ("url" in webhook, webhook["pull"]) == (False, True)
    create_repo(ada, "tiny")
    settle(hub)
    (log,) = ada.get(f"{PATH}/{webhook['id']}/logs").json()
    assert (log["state"], log["attempts"], log["nextAttemptAt"]) == ("stored", 0, None)
    full = ada.get(f"{PATH}/{webhook['id']}/logs/{log['id']}").json()
    assert (full["request"], full["tries"]) == ({"url": None, "headers": {}}, [])
    sent = ada.post(f"{PATH}/{webhook['id']}", json={"url": URL}).json()["webhook"]
    assert (sent["url"], "pull" in sent) == (URL, False)


def test_logs_list_deliveries(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    receiver.answer = b"<b>no</b>"
    webhook = create_webhook(ada, receiver.url, "user:ada", secret="whsec_c2VjcmV0")
    at = f"{PATH}/{webhook['id']}"
    create_repo(ada, "tiny")
    settle(hub)
    receiver.status = 503
    create_commit(ada, "ada/tiny", {"a.txt": b"one"})
    settle(hub)
    content, create = ada.get(f"{at}/logs").json()
    assert MOMENT.fullmatch(content["at"])
    assert MOMENT.fullmatch(content["nextAttemptAt"])
    assert content == {
        "id": content["id"],
        "event": {"id": content["event"]["id"], "action": "update", "scope": "repo.content"},
        "repo": {"type": "model", "name": "ada/tiny"},
        "state": "retrying",
        "status": 503,
        "attempts": 1,
        "at": content["at"],
        "nextAttemptAt": content["nextAttemptAt"],
        "replayOf": None,
    }
    assert (create["state"], create["nextAttemptAt"]) == ("delivered", None)
    full = ada.get(f"{at}/logs/{content['id']}").json()
    (sent,) = [one for one in receiver.received if one.headers["webhook-id"] == content["id"]]
    assert full["payload"] == sent.json
    assert full["request"]["url"] == receiver.url
    # As sent, except for the secret.
    headers = {name.lower(): value for name, value in full["request"]["headers"].items()}
    assert headers.pop("x-webhook-secret") == "***"
    assert headers == {name: sent.headers[name] for name in headers}
    assert {*sent.headers} - {*headers} == {"host", "content-length", "accept-encoding", "x-webhook-secret"} & {
        *sent.headers
    }
    (tried,) = full["tries"]
    assert (tried["status"], tried["error"], tried["response"]) == (503, None, "<b>no</b>")
    assert MOMENT.fullmatch(tried["at"])
    assert 0 <= tried["durationMs"] < 15_000
    assert "whsec_" not in ada.get(f"{at}/logs/{content['id']}").text + ada.get(f"{at}/logs").text

    def ids(query: str) -> list[str]:
        return [log["id"] for log in ada.get(f"{at}/logs?{query}").json()]

    assert ids("state=retrying") == ids("scope=repo.content") == [content["id"]]
    assert ids("repo=Ada/Tiny&state=delivered") == ids("scope=repo") == [create["id"]]
    assert ids("repo=ada/other") == ids("scope=none") == []
    first = ada.get(f"{at}/logs?limit=1&repo=ada/tiny")
    (link,) = re.findall(r'<(.+)>; rel="next"', first.headers["link"])
    assert link.startswith(f"{hub.url}{at}/logs?limit=1&repo=ada%2Ftiny&cursor=")
    second = ada.get(link)
    assert ([first.json()[0], second.json()[0]], "link" in second.headers) == ([content, create], False)
    assert MOMENT.fullmatch(ada.get(at).json()["webhook"]["lastTriggerAt"])


@pytest.mark.one_engine
def test_no_answer_has_one_text_for_all_causes(hub: RunningHub, ada: httpx.Client) -> None:
    with run_receiver() as closed:
        pass
    for url in (closed.url, "http://nobody.invalid/hook"):
        webhook = create_webhook(ada, url, "user:ada")
        with deliver_in_background(hub):
            sent = ada.post(f"{PATH}/{webhook['id']}/test").json()
        assert sent["status"] is None
        (tried,) = ada.get(f"{PATH}/{webhook['id']}/logs/{sent['id']}").json()["tries"]
        assert (tried["status"], tried["error"], tried["response"]) == (None, "No answer from the address.", "")


def test_test_delivery_uses_the_newest_repo_or_a_sample(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada", secret="s")
    at = f"{PATH}/{webhook['id']}"
    with deliver_in_background(hub):
        sample = ada.post(f"{at}/test")
        assert (sample.status_code, sample.json()) == (200, {"status": 200, "id": sample.json()["id"]})
        create_repo(ada, "old")
        hub.clock.advance(seconds=1)
        create_repo(ada, "rows", "dataset", private=True)
        sent = ada.post(f"{at}/test").json()
    by_id = {one.headers["webhook-id"]: one for one in receiver.received}
    assert by_id[sample.json()["id"]].json["repo"] | {"url": 0, "headSha": 0, "head_sha": 0} == {
        "type": "model",
        "name": "ada/example",
        "id": NOBODY,
        "private": False,
        "url": 0,
        "owner": {"id": NOBODY},
        "headSha": 0,
        "head_sha": 0,
    }
    newest = by_id[sent["id"]]
    assert (newest.kind, newest.json["repo"]["name"]) == ("repo.content update", "ada/rows")
    assert newest.json["updatedRefs"][0]["newSha"] == newest.json["repo"]["headSha"]
    for one in (by_id[sample.json()["id"]], newest):
        assert (one.headers["x-hubgate-test"], one.headers["x-hubgate-sequence"]) == ("1", "0")
        assert one.headers["x-webhook-secret"] == "s"
    assert all("x-hubgate-test" not in one.headers for one in receiver.received if one.kind == "repo create")
    logged = ada.get(f"{at}/logs/{sent['id']}").json()
    assert (logged["replayOf"], logged["request"]["headers"]["X-Hubgate-Test"]) == (None, "1")
    # Repos that its owner may not read cannot be tested.
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        foreign = create_webhook(eve, receiver.url, "user:ada")
        with deliver_in_background(hub):
            told = eve.post(f"{PATH}/{foreign['id']}/test").json()
    (one,) = [one for one in receiver.received if one.headers["webhook-id"] == told["id"]]
    assert one.json["repo"]["name"] == "ada/old"


@pytest.mark.one_engine
def test_test_delivery_works_without_an_existing_watched_repo(
    hub: RunningHub, ada: httpx.Client, receiver: Receiver
) -> None:
    """Existing clients know buckets and kernels."""
    webhook = create_webhook(ada, receiver.url, "bucket:ada/b", "kernel:ada/k")
    with deliver_in_background(hub):
        assert ada.post(f"{PATH}/{webhook['id']}/test").json()["status"] == 200
    (one,) = receiver.received
    assert (one.json["repo"]["type"], one.json["repo"]["name"]) == ("model", "ada/b")


@pytest.mark.one_engine
def test_delivery_can_be_replayed(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    receiver.status = 500
    webhook = create_webhook(ada, receiver.url, "user:ada", secret="old")
    at = f"{PATH}/{webhook['id']}"
    create_repo(ada, "tiny")
    settle(hub)
    (log,) = ada.get(f"{at}/logs").json()
    receiver.status = 201
    ada.post(at, json={"secret": "new"})
    with deliver_in_background(hub):
        answer = ada.post(f"{at}/replay/{log['id']}")
    first, second = receiver.received
    assert (answer.status_code, answer.json()) == (200, {"status": 201, "id": second.headers["webhook-id"]})
    assert (first.body == second.body, first.headers["webhook-id"]) == (True, log["id"])
    assert (first.headers["x-webhook-secret"], second.headers["x-webhook-secret"]) == ("old", "new")
    assert answer.json()["id"] != log["id"]
    logged = ada.get(f"{at}/logs/{answer.json()['id']}").json()
    assert (logged["replayOf"], logged["event"]) == (log["id"], log["event"])
    ada.post(f"{at}/disable")
    for tail in (f"replay/{log['id']}", "test"):
        refused = ada.post(f"{at}/{tail}")
        assert (refused.status_code, refused.json()["error"]) == (409, "This webhook is disabled. Enable it first.")


@pytest.mark.one_engine
def test_organizations_webhooks_are_for_its_admins(hub: RunningHub, receiver: Receiver) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    path = "/api/organizations/acme/settings/webhooks"
    body = {"url": receiver.url, "watched": [{"type": "org", "name": "acme"}]}
    with api(hub, create_token(hub, ada)) as admin, api(hub, create_token(hub, bob)) as writer:
        webhook = admin.post(path, json=body).json()["webhook"]
        create_repo(writer, "acme/tiny", private=True)
        settle(hub)
        assert receiver.kinds == ["repo create"]
        assert admin.get(path).json()[0]["id"] == webhook["id"]
        assert [admin.get(PATH).json(), admin.get(f"{PATH}/{webhook['id']}").status_code] == [[], 404]
        assert [log["state"] for log in admin.get(f"{path}/{webhook['id']}/logs").json()] == ["delivered"]
        assert [writer.get(path).status_code, writer.post(path, json=body).status_code] == [403, 403]
        assert admin.get(path.replace("acme", "nobody")).status_code == 404


@pytest.mark.one_engine
def test_w31_unsent_delivery_is_hidden_after_the_permission_is_lost(hub: RunningHub, receiver: Receiver) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, bob)) as member, api(hub, create_token(hub, ada)) as admin:
        webhook = create_webhook(member, receiver.url, "org:acme")
        at = f"{PATH}/{webhook['id']}/logs"
        create_repo(admin, "acme/tiny", private=True)
        settle(hub)
        receiver.status = 500
        create_commit(admin, "acme/tiny", {"a.txt": b"one"})
        settle(hub)
        failed, delivered = (log["id"] for log in member.get(at).json())
        assert member.get(f"{at}/{failed}").json()["payload"]
        assert admin.delete("/api/organizations/acme/members/bob").status_code == 200
        shown = [member.get(f"{at}/{one}").json() for one in (failed, delivered)]
        assert [(one["state"], one["payload"] is None) for one in shown] == [("retrying", True), ("delivered", False)]
        hub.clock.advance(10)
        assert settle(hub) == 0
        assert member.get(f"{at}/{failed}").json()["reason"] == "forbidden"


@pytest.mark.one_engine
def test_webhooks_scope_is_required(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, scopes=("openid", "webhooks", "manage-repos"))

    def token(scope: str) -> str:
        return tokens_for(client, ada, scope=scope)["access_token"]

    with api(hub, token("openid webhooks")) as allowed:
        webhook = made(allowed, secret="s")
        assert webhook.pop("secret") == "s"
        assert allowed.get(PATH).json() == [webhook]
    with api(hub, token("openid manage-repos")) as other:
        assert [other.get(PATH).status_code, other.post(PATH, json={}).status_code] == [403, 403]
    with api(hub, create_token(hub, ada, "read")) as reader:
        assert reader.get(PATH).status_code == 200
        assert reader.post(f"{PATH}/{webhook['id']}/disable").status_code == 403
