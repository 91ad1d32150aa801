"""`/api/settings/webhooks/{id}/events`: the deliveries of a webhook by number, as pages or as server-sent events."""

import msgspec
from msgspec.structs import replace

from hubgate.server.access.caller import share_key_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import KIB, Query, Route
from hubgate.server.errors import BadRequest
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.headers import ALLOWED_HEADERS
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.paging import DEFAULT_LIMIT, MAX_LIMIT
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.event_streams import STREAM_TYPE, EventStream
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

# For a page of JSON.
PAGE_BYTES = 4 * 1024 * KIB
# For a part of a stream: what the client has missed, and what happens while it is connected.
MISSED = PageSize(200, 256 * KIB)
LIVE = PageSize(16, 64 * KIB)

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

        async def read_next(stream: Stream, cursor: int) -> Part:
            reader = await self.live.shared_check(stream, credential, check_again)
            if stream.latest - cursor > LIVE.events:
                return _encoded(await reader.page(cursor, MISSED))

            async def read() -> Part:
                return _encoded(await reader.small_page(cursor, LIVE))

            return await self.live.shared((reader.webhook_id, reader.visible, cursor), read)

        return EventStream(self.live, reader.webhook_id, share_key_of(request), _encoded(page), read_next)

    async def _reader(self, request: HubRequest, context: OwnerContext) -> Reader:
        return await open_reader(self.webhooks, context.identity, context.owner, request.param("id"))


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
