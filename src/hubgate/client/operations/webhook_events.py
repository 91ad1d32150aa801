"""Events of a webhook by number: in pages, and live as server-sent events."""

import json
from collections.abc import Callable

from hubgate.client.addresses import path_segment
from hubgate.client.codec import decode
from hubgate.client.errors import UnexpectedResponse
from hubgate.client.models import EventPage, WebhookEvent
from hubgate.client.session import Call, Session
from hubgate.client.wire import Flow, Response

STREAM_TYPE = "text/event-stream"
# The hub sends a comment every fifteen seconds. After this much silence the connection counts as lost, for example
# because the computer was asleep.
SILENCE_SECONDS = 45.0
# Larger than any event.
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


def webhook_events(
    session: Session,
    webhook_id: str,
    *,
    after: int | str | None = None,
    limit: int | None = None,
    organization: str | None = None,
) -> Flow[EventPage]:
    """Read the events after a cursor, in order. By default the oldest stored event is first; `after="latest"` returns
    only the current cursor. Raises Gone if events after the cursor are no longer stored.
    """
    call = Call("GET", _path(organization, webhook_id), query={"after": after, "limit": limit})
    return decode(EventPage, (yield from session.json(call)))


def follow_webhook(
    session: Session,
    webhook_id: str,
    on_event: Callable[[WebhookEvent], object],
    *,
    after: int | str | None = None,
    on_open: Callable[[], object] | None = None,
    organization: str | None = None,
) -> Flow[None]:
    """Call `on_event` for each event after a cursor, as it happens, and `on_open` once the connection works.

    Returns when the hub ends the stream, and raises ConnectionLost when the connection is lost. In both cases call it
    again with the cursor of the last event.
    """
    sink = EventSink(lambda data: on_event(_event(data)), on_open)
    headers = {"Accept": STREAM_TYPE}
    path = _path(organization, webhook_id)
    call = Call(
        "GET", path, query={"after": after}, headers=headers, sink=sink, read_timeout=SILENCE_SECONDS, retried=False
    )
    yield from session.call(call)
    if not sink.is_open:
        raise UnexpectedResponse("The hub did not answer with a stream of events.")


def _path(organization: str | None, webhook_id: str) -> str:
    owner = "" if organization is None else f"/organizations/{path_segment(organization)}"
    return f"/api{owner}/settings/webhooks/{path_segment(webhook_id)}/events"


class EventSink:
    """Parses a stream of server-sent events, which have one line of data each. Empty events keep it alive."""

    def __init__(self, on_data: Callable[[bytes], object], on_open: Callable[[], object] | None) -> None:
        self._on_data, self._on_open = on_data, on_open
        self._unread = bytearray()
        self.is_open = False

    def begin(self, response: Response) -> bool:
        self.is_open = response.media_type == STREAM_TYPE
        if self.is_open and self._on_open is not None:
            self._on_open()
        return self.is_open

    def write(self, piece: bytes) -> None:
        self._unread += piece
        *lines, rest = self._unread.split(b"\n") if b"\n" in piece else [self._unread]
        self._unread = rest
        if len(rest) > MAX_MESSAGE_BYTES:
            raise UnexpectedResponse("The hub sent an event that is too long.")
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip():
                self._on_data(bytes(line[5:]))


def _event(data: bytes) -> WebhookEvent:
    try:
        return decode(WebhookEvent, json.loads(data))
    except (ValueError, RecursionError):
        raise UnexpectedResponse("The hub sent an event that cannot be read.") from None
