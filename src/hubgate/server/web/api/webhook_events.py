"""`/api/settings/webhooks/{id}/events`: the deliveries of a webhook by number, as pages or as server-sent events."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubgate.server.access.caller import share_key_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.errors import BadRequest, HubError
from hubgate.server.http.headers import ALLOWED_HEADERS
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import send_in_time
from hubgate.server.http.surface import Surface
from hubgate.server.jobs.caller import ClientLeft
from hubgate.server.paging import DEFAULT_LIMIT, MAX_LIMIT
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.owner_routes import WEBHOOKS, OwnerContext
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.stream.live import LiveStreams, Part, Stream
from hubgate.server.webhooks.stream.reading import (
    LATEST,
    OLDEST,
    EventPage,
    EventsExpired,
    PageSize,
    Reader,
    StreamedEvent,
    open_reader,
)

STREAM_TYPE = "text/event-stream"
# For a page of JSON.
PAGE_BYTES = 4 * 1024 * KIB
# For a part of a stream: what the client has missed, and what happens while it is connected.
MISSED = PageSize(200, 256 * KIB)
LIVE = PageSize(16, 64 * KIB)

_HEADERS = [
    (b"content-type", STREAM_TYPE.encode()),
    (b"cache-control", b"no-store"),
    # Otherwise nginx collects events before it forwards them.
    (b"x-accel-buffering", b"no"),
]
_COMMENT = b":\n\n"
# Numbers fit into a column of 64 bits.
_LONGEST_NUMBER = 18
_ANSWERS = {
    200: (f"Events in order. With `Accept: {STREAM_TYPE}` a stream of the same objects.", EventPage),
    **NO_TOKEN,
    403: ("The token lacks the webhooks scope, or you are not an admin of the organization.", None),
    404: ("Webhook not found, or it belongs to someone else.", None),
    410: ("Events after this cursor are no longer stored; `oldest` is the oldest that is.", None),
    422: ("The cursor is newer than the latest event.", None),
}
_QUERY = (
    Query(
        "after",
        "The cursor of the last event that you have, or `latest`; by default the stored events from the oldest on.",
    ),
    Query("limit", "The maximum number of events in a page.", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT}),
)


def routes(webhooks: Webhooks, accounts: Accounts, guard: Guard, live: LiveStreams) -> list[Route]:
    api = _Api(webhooks, guard, live)
    return [
        WEBHOOKS.route(
            owners,
            "GET",
            "/{id}/events",
            api.events,
            Surface.API,
            f"Events of one of {whose} webhooks, in order",
            answers=_ANSWERS,
            query=_QUERY,
            request_headers=f"{ALLOWED_HEADERS}, Last-Event-ID",
        )
        for owners, whose in ((None, "your"), (accounts, "an organization's"))
    ]


class _Api(msgspec.Struct, frozen=True):
    webhooks: Webhooks
    guard: Guard
    live: LiveStreams

    async def events(self, request: HubRequest, context: OwnerContext) -> ASGIApp:
        query = request.query()
        streams = STREAM_TYPE in request.headers.get("accept", "").lower()
        # A browser that connects again repeats the address, and adds the header.
        resumed = request.headers.get("last-event-id") if streams else None
        after = _parse_cursor(resumed or query.get("after"))
        size = PageSize(_parse_limit(query.get("limit")), PAGE_BYTES)
        reader = await self._reader(request, context)
        try:
            page = await (reader.small_page(after, LIVE) if streams else reader.page(after, size))
        except EventsExpired as error:
            return JsonResponse({"error": error.message, "oldest": error.oldest}, error.status)
        if not streams:
            return JsonResponse(page)

        async def check_again() -> Reader:
            """Read the caller again: a stream may last for days (attack O44)."""
            identity = (await self.guard.reload_caller(request)).identity
            organization = context.organization
            action = WEBHOOKS.read_actions[0 if organization is None else 1]
            resource = Account(context.user.id) if organization is None else Organization(organization.id)
            decide(identity, action, resource).enforce()
            return await self._reader(request, replace(context, identity=identity))

        # The organization is part of the address: without it, the webhook is one of the user's own.
        credential = (request.headers.get("authorization"), context.organization and context.organization.id)
        return _EventStream(self.live, reader.webhook_id, share_key_of(request), page, credential, check_again)

    async def _reader(self, request: HubRequest, context: OwnerContext) -> Reader:
        return await open_reader(self.webhooks, context.identity, context.owner, request.param("id"))


class _EventStream:
    """A stream of server-sent events. When the caller loses the permission, the webhook is deleted, events are missing
    or the process stops, the stream ends: the client connects again, and gets an error or the following events.
    """

    def __init__(
        self,
        live: LiveStreams,
        webhook_id: str,
        user: str,
        first: EventPage,
        credential: object,
        check_again: Callable[[], Coroutine[Any, Any, Reader]],
    ) -> None:
        self._live, self._webhook_id, self._user = live, webhook_id, user
        self._first, self._credential, self._check_again = first, credential, check_again

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.ensure_future(receive())
        try:
            with self._live.follow(self._webhook_id, self._user) as stream:
                disconnected.add_done_callback(lambda _: stream.end())
                await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
                # Servers send the headers together with the first part.
                await self._send(send, _body(_COMMENT))
                with contextlib.suppress(HubError):
                    await self._stream(stream, send)
            if disconnected.done():
                raise ClientLeft
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnected.cancel()

    async def _stream(self, stream: Stream, send: Send) -> None:
        part = _encoded(self._first)
        while True:
            if part.data:
                await self._send(send, _body(part.data))
            if stream.latest <= part.cursor:
                await stream.wait(part.cursor, self._live.comment_seconds)
            if stream.has_ended:
                return
            if stream.latest <= part.cursor:
                await self._send(send, _body(_COMMENT))
            part = await self._next(stream, part.cursor)

    async def _next(self, stream: Stream, cursor: int) -> Part:
        reader = await self._live.shared_check(stream, self._credential, self._check_again)
        if stream.latest - cursor > LIVE.events:
            return _encoded(await reader.page(cursor, MISSED))

        async def read() -> Part:
            return _encoded(await reader.small_page(cursor, LIVE))

        return await self._live.shared((reader.webhook_id, reader.visible, cursor), read)

    async def _send(self, send: Send, message: Message) -> None:
        await send_in_time(send, message, self._live.stall_seconds)


def _body(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


def _encoded(page: EventPage) -> Part:
    return Part(b"".join(_message(event) for event in page.events), page.cursor)


def _message(event: StreamedEvent) -> bytes:
    """A server-sent event. JSON has no line breaks outside of strings, and inside they are escaped."""
    return b"id: %d\ndata: %b\n\n" % (event.cursor, msgspec.json.encode(event))


def _parse_cursor(given: str | None) -> int:
    if not given:
        return OLDEST
    if given == "latest":
        return LATEST
    if not given.isascii() or not given.isdigit() or len(given) > _LONGEST_NUMBER:
        raise BadRequest("after must be a cursor of this webhook, or latest.")
    return int(given)


def _parse_limit(given: str | None) -> int:
    text = given or str(DEFAULT_LIMIT)
    if not text.isascii() or not text.isdigit() or int(text[:9]) < 1:
        raise BadRequest("limit must be a whole number of at least 1.")
    return min(int(text[:9]), MAX_LIMIT)
