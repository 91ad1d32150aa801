"""Events of a webhook in the client library."""

from collections.abc import Callable

import pytest
from tests.bed.hostile import http_response, json_response, run_hostile_server
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import settle

from hubgate import AsyncHub, Hub
from hubgate.client import ConnectionLost, Gone, UnexpectedResponse
from hubgate.client.models import WebhookEvent

EVENT = b'id: 7\ndata: {"cursor": 7, "id": "d", "skipped": "quota"}\n\n'


class Enough(Exception):
    """Ends a stream."""


def test_events_are_read_and_followed(sqlite_hub: RunningHub, as_user: Callable[..., Hub]) -> None:
    hub = as_user("ada")
    webhook = hub.create_webhook(watched=["user:ada"], pull=True)
    for name in ("one", "two", "three"):
        hub.create_repo(f"ada/{name}")
        settle(sqlite_hub)
    page = hub.webhook_events(webhook.id, limit=2)
    assert ([event.cursor for event in page.events], page.cursor) == ([1, 2], 2)
    assert '"name":"ada/one"' in (page.events[0].body or "")
    assert (page.events[0].headers or {})["webhook-id"] == page.events[0].id
    assert hub.webhook_events(webhook.id, after="latest").cursor == 3
    followed: list[WebhookEvent] = []
    opened: list[bool] = []

    def on_event(event: WebhookEvent) -> None:
        followed.append(event)
        if event.cursor == 3:
            raise Enough

    with pytest.raises(Enough):
        hub.follow_webhook(webhook.id, on_event, after=1, on_open=lambda: opened.append(True))
    assert ([event.cursor for event in followed], opened) == ([2, 3], [True])


async def test_events_are_followed_in_an_event_loop(sqlite_hub: RunningHub) -> None:
    token = create_token(sqlite_hub, create_user(sqlite_hub, "ada"))
    async with AsyncHub(sqlite_hub.url, token) as hub:
        webhook = await hub.create_webhook(watched=["user:ada"], pull=True)
        await hub.create_repo("ada/one")
        settle(sqlite_hub)

        def on_event(event: WebhookEvent) -> None:
            assert event.cursor == 1
            raise Enough

        with pytest.raises(Enough):
            await hub.follow_webhook(webhook.id, on_event)


def test_expired_cursor_raises_gone() -> None:
    body = {"error": "Events after number 1 are no longer stored.", "oldest": 12}
    with run_hostile_server(json_response(410, body)) as server, pytest.raises(Gone) as caught:
        Hub(server.url, "hf_x").webhook_events("w", after=1)
    assert (caught.value.oldest, caught.value.status) == (12, 410)
    with run_hostile_server(json_response(410, {"oldest": "x"})) as server, pytest.raises(Gone) as caught:
        Hub(server.url, "hf_x").follow_webhook("w", print, after=1)
    assert caught.value.oldest is None


def test_lost_stream_is_not_retried() -> None:
    """A retry would repeat events."""
    seen: list[int] = []
    cut = http_response(200, EVENT + b"data: {", content_type="text/event-stream")[: -len(b"data: {")]
    with run_hostile_server(cut) as server, pytest.raises(ConnectionLost):
        Hub(server.url, "hf_x").follow_webhook("w", lambda event: seen.append(event.cursor))
    assert (seen, len(server.seen)) == ([7], 1)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<html>"),
        ("text/event-stream", b"data: [1]\n\n"),
        ("text/event-stream", b"data: {\n\n"),
        ("text/event-stream", b"data: " + b"[" * 100_000 + b"\n\n"),
        ("text/event-stream", b'data: {"cursor": "7", "id": "d"}\n\n'),
    ],
)
def test_other_answers_are_rejected(kind: str, body: bytes) -> None:
    with run_hostile_server(http_response(200, body, content_type=kind)) as server, pytest.raises(UnexpectedResponse):
        Hub(server.url, "hf_x").follow_webhook("w", print)
