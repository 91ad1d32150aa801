"""`/hosted/{owner}/{name}/`: requests and deliveries to the apps of Spaces."""

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import NAME, create_space, find_space, serve_space, set_stage
from tests.bed.webhooks import create_webhook, deliver_due, logs, settle

from hubgate.server.accounts.model import User
from hubgate.server.clock import HOUR
from hubgate.server.resources import Hub
from hubgate.server.spaces.model import Stage

URL = f"/hosted/{NAME}/webhooks/train"


@pytest.fixture
def hub(spaces_hub: RunningHub) -> RunningHub:
    return spaces_hub


def deliver_within(hub: RunningHub, seconds: float, starts: int = 60) -> int:
    async def work(opened: Hub) -> int:
        pace = replace(opened.webhooks.pace, deadline_seconds=seconds, starts=starts)
        webhooks = replace(opened.webhooks, pace=pace)
        return await deliver_due(webhooks, silence_seconds=None)

    return hub.call(work)


@pytest.mark.one_engine
def test_post_to_webhooks_reaches_the_app_without_credentials(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    with serve_space(spaces_hub, space) as served:
        served.body = b'{"hello": "<script>"}'
        answered = ada.post(f"{URL}?a=1%2F2", content=b"{}", headers={"cookie": "session=x", "x-webhook-secret": "s"})
        assert (answered.status_code, answered.json()) == (200, {"hello": "<script>"})
        assert answered.headers["content-type"] == "application/json"
        assert answered.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert (served.heads[0].path, served.bodies) == ("/webhooks/train?a=1%2F2", [b"{}"])
        names = {name for name, _ in served.heads[0].headers}
        assert "x-webhook-secret" in names
        assert not names & {"authorization", "cookie", "host", "x-forwarded-for"}
        served.status = 418
        with spaces_hub.client() as anyone:
            assert anyone.post(URL).status_code == 418
            for path in ("", "/", "/webhooks/", "/webhooks/../x", "/webhooks/%2e%2e/x", "/other"):
                assert anyone.post(f"/hosted/{NAME}{path}").status_code in (404, 405), path
            for path in ("", "/", "/webhooks/train", "/any?x=1"):
                page = anyone.get(f"/hosted/{NAME}{path}")
                assert (page.status_code, "This Space runs." in page.text) == (200, True)
                assert page.headers["content-security-policy"].startswith("sandbox; default-src 'none'; style-src")
        assert len(served.heads) == 2


@pytest.mark.one_engine
def test_private_space_takes_requests_of_readers_only(spaces_hub: RunningHub, ada: httpx.Client, user: User) -> None:
    space = create_space(ada, private=True)
    eve = create_user(spaces_hub, "eve")
    with serve_space(spaces_hub, space) as served, api(spaces_hub, create_token(spaces_hub, eve)) as stranger:
        missing = stranger.post("/hosted/ada/nothing/webhooks/train")
        hidden = stranger.post(URL)
        assert (hidden.status_code, hidden.json()) == (missing.status_code, missing.json())
        with spaces_hub.client() as anyone:
            assert anyone.post(URL).status_code == anyone.post("/hosted/ada/nothing/webhooks/x").status_code == 401
            assert anyone.get(f"/hosted/{NAME}/").text == anyone.get("/hosted/ada/nothing/").text
        assert served.heads == []
        with api(spaces_hub, create_token(spaces_hub, user, "read")) as reader:
            assert reader.post(URL).status_code == 200


@pytest.mark.one_engine
def test_deliveries_reach_a_space_without_leaving_the_hub(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    eve = create_user(spaces_hub, "eve")
    space = create_space(ada, private=True)
    settle(spaces_hub)
    url = f"{spaces_hub.url}{URL}"
    with serve_space(spaces_hub, space) as served, api(spaces_hub, create_token(spaces_hub, eve)) as stranger:
        mine = create_webhook(ada, url, "user:ada", secret="a-secret-of-ada")
        others = create_webhook(stranger, url, "user:ada")
        create_repo(ada, "corpus")
        settle(spaces_hub)
        assert [delivery["state"] for delivery in logs(ada, mine)] == ["delivered"]
        assert ("x-webhook-secret", "a-secret-of-ada") in [(k.lower(), v) for k, v in served.heads[0].headers]
        # A private Space is hidden from webhooks of users who may not see it.
        assert [delivery["status"] for delivery in logs(stranger, others)] == [404]
        assert len(served.heads) == 1
    body = {"url": f"{spaces_hub.url}/hosted/{NAME}/other", "watched": [{"type": "user", "name": "ada"}]}
    refused = ada.post("/api/settings/webhooks", json=body)
    assert "begin with /webhooks/" in refused.json()["error"]


def test_starting_space_delays_deliveries_without_counting_failures(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    settle(spaces_hub)
    webhook = create_webhook(ada, f"{spaces_hub.url}{URL}", "user:ada")
    set_stage(spaces_hub, space, Stage.SLEEPING)
    before = find_space(spaces_hub, space)
    spaces_hub.clock.now += HOUR
    create_repo(ada, "corpus")
    deliver_within(spaces_hub, 0.3)
    # The request asked the Space to wake, and nothing was sent.
    assert find_space(spaces_hub, space).last_request_at == before.last_request_at + HOUR
    [waiting] = logs(ada, webhook)
    assert (waiting["state"], waiting["attempts"]) == ("pending", 0)
    # A Space that does not start for a long time is a failure, so that the retries end at some time.
    spaces_hub.clock.advance(10)
    deliver_within(spaces_hub, 0.3, starts=0)
    [failed] = logs(ada, webhook)
    assert (failed["state"], failed["attempts"], failed["status"]) == ("retrying", 1, 503)
    with serve_space(spaces_hub, space) as served:
        spaces_hub.clock.advance(60)
        settle(spaces_hub)
        assert [delivery["state"] for delivery in logs(ada, webhook)] == ["delivered"]
        assert len(served.heads) == 1


@pytest.mark.one_engine
def test_space_that_does_not_run_rejects_requests(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    settle(spaces_hub)
    webhook = create_webhook(ada, f"{spaces_hub.url}{URL}", "user:ada")
    for stage, text in (
        (Stage.PAUSED, "is paused"),
        (Stage.BUILD_ERROR, "not be built"),
        (Stage.RUNTIME_ERROR, "fail"),
    ):
        set_stage(spaces_hub, space, stage)
        refused = ada.post(URL)
        assert (refused.status_code, text in refused.json()["error"]) == (503, True)
        assert stage.value in ada.get(f"/hosted/{NAME}/").text
    create_repo(ada, "corpus")
    settle(spaces_hub)
    assert [(each["state"], each["status"]) for each in logs(ada, webhook)] == [("retrying", 503)]


@pytest.mark.one_engine
def test_no_space_is_hosted_where_none_run(plain_hub: RunningHub) -> None:
    with api(plain_hub, create_token(plain_hub, create_user(plain_hub, "ada"))) as client:
        create_space(client)
        assert client.post(URL).status_code == 404
        assert client.get(f"/hosted/{NAME}/").status_code == 404
        created = client.post("/api/repos/create", json={"name": "x", "organization": "hosted"})
        assert created.status_code in (403, 404)
