"""The texts of comments in events: shortened, or in no stored event because the comment was hidden or removed, so that
nothing sends or shows it later.
"""

from collections.abc import Iterator

import httpx
import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

pytestmark = pytest.mark.one_engine

DISCUSSIONS = "/api/models/ada/tiny/discussions"


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        create_repo(client, "tiny")
        settle(hub)
        yield client


def comment_on(client: httpx.Client, text: str) -> str:
    answer = client.post(f"{DISCUSSIONS}/1/comment", json={"comment": text})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["newMessage"]["id"])


def test_hidden_text_is_not_sent_again(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    """Neither by a retry, nor by a replay, nor by the first attempt after a pause; the id stays the same."""
    assert ada.post(DISCUSSIONS, json={"title": "A question", "description": "the question"}).status_code == 200
    settle(hub)
    webhook = create_webhook(ada, receiver.url, "user:ada", domains=["discussion"])
    at = f"/api/settings/webhooks/{webhook['id']}"
    receiver.status = 500
    comment = comment_on(ada, "spam one")
    comment_on(ada, "a good answer")
    hub.clock.advance(seconds=1)
    assert ada.post(f"{DISCUSSIONS}/1/comment/{comment}/edit", json={"content": "spam two"}).status_code == 200
    settle(hub)
    failed = receiver.received[0]
    assert failed.json["comment"]["content"] == "spam one"
    assert ada.post(f"{DISCUSSIONS}/1/comment/{comment}/hide").status_code == 200
    receiver.status = 200
    received = len(receiver.received)
    for _ in range(5):
        hub.clock.advance(seconds=60)
        settle(hub)
    retried = receiver.received[received:]
    assert failed.headers["webhook-id"] in {one.headers["webhook-id"] for one in retried}
    texts = {one.headers["webhook-id"]: one.json["comment"].get("content") for one in retried}
    assert sorted(texts.values(), key=str) == [None, None, None, "a good answer"]
    hidden = [one.json["comment"] for one in retried if one.json["comment"]["id"] == comment]
    assert {found["hidden"] for found in hidden} == {True}
    logs = ada.get(f"{at}/logs").json()
    assert len(logs) == 4
    received_before_replays = len(receiver.received)
    with deliver_in_background(hub):
        for log in logs:
            assert "spam" not in ada.get(f"{at}/logs/{log['id']}").text
            assert ada.post(f"{at}/replay/{log['id']}").json()["status"] == 200
    assert len(receiver.received) == received_before_replays + 4
    assert not [one for one in receiver.received[received:] if b"spam" in one.body]


def test_removed_discussion_leaves_no_text_in_stored_deliveries(hub: RunningHub, ada: httpx.Client) -> None:
    """A webhook without a URL stores its deliveries until they are read."""
    body = {"pull": True, "watched": [{"type": "user", "name": "ada"}], "domains": ["discussion"]}
    at = f"/api/settings/webhooks/{ada.post('/api/settings/webhooks', json=body).json()['webhook']['id']}"
    for number in (1, 2):
        body = {"title": "A question", "description": f"description {number}"}
        assert ada.post(DISCUSSIONS, json=body).status_code == 200
    comment_on(ada, "an answer")
    settle(hub)
    assert ada.delete(f"{DISCUSSIONS}/1").status_code == 200
    settle(hub)
    logs = ada.get(f"{at}/logs").json()
    payloads = [ada.get(f"{at}/logs/{log['id']}").json()["payload"] for log in logs]
    assert [one["event"]["action"] for one in payloads] == ["delete", "create", "create", "create"]
    assert [one.get("comment", {}).get("content") for one in payloads] == [None, None, "description 2", None]


def test_comment_that_makes_a_payload_too_large_is_cut(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    assert ada.post(DISCUSSIONS, json={"title": "A question", "description": "the question"}).status_code == 200
    settle(hub)
    create_webhook(ada, receiver.url, "user:ada", domains=["discussion"])
    comment_on(ada, "é" * 65_536)
    # 65,536 characters of four bytes do not fit into 256 KiB; 32 KiB end within a character.
    comment_on(ada, "a" + "😀" * 65_535)
    settle(hub)
    whole, cut = (received.json for received in receiver.received)
    assert (whole["comment"]["content"], whole.get("truncated")) == ("é" * 65_536, None)
    assert (cut["comment"]["content"], cut["truncated"]) == ("a" + "😀" * 8191, True)
