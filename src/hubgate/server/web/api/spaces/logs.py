"""Logs of a Space as server-sent events: of the latest build, and of the app."""

from collections.abc import AsyncGenerator
from functools import partial

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import share_key_of
from hubgate.server.access.policy import decide
from hubgate.server.clock import iso
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Query, Route
from hubgate.server.errors import NotFound
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.spaces import logs_store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.logs_store import BUILD, RUN, Line
from hubgate.server.web.api.spaces.wire import space_route
from hubgate.server.web.event_streams import STREAM_TYPE, EventStream
from hubgate.server.webhooks.stream.live import LiveStreams, Part, Stream

LINES_PER_PART = 200
_LONGEST_NUMBER = 18
# Existing clients skip empty events.
_KEEP_ALIVE = b"data:\n\n"
_ANSWERS = {200: ('Server-sent events: `data: {"data": "line", "timestamp": "..."}`, the oldest line first.', None)}


_FOLLOW = Query("follow", "With `false`, the stream ends after the stored lines.", {"type": "boolean"})


class LogLine(msgspec.Struct):
    data: str
    timestamp: str
    # The number of the line, which is also the id of the event.
    n: int


def routes(repos: Repos, spaces: Spaces, guard: Guard, live: LiveStreams) -> list[Route]:
    async def follow(request: HubRequest, repo: Repo, *, kind: str) -> ASGIApp:
        async def read_next(_: Stream, cursor: int) -> Part:
            identity = (await guard.reload_caller(request)).identity
            current = await repo_store.by_id(spaces.db, repo.id)
            if current is None:
                raise NotFound(REPO_GONE)
            # A stream may last for days (attack O44).
            decide(identity, Action.REPO_CONFIGURE, current.as_resource()).enforce()
            return await read_part(spaces, repo.id, kind, cursor)

        after = _cursor(request.headers.get("last-event-id"))
        if not spaces.is_on or request.query().get("follow") == "false":
            headers = {"content-type": STREAM_TYPE, "cache-control": "no-store"}
            return StreamedResponse(_stored(spaces, repo.id, kind, after), headers)
        first = await read_part(spaces, repo.id, kind, after)
        followed = logs_store.followed_id(repo.id, kind)
        return EventStream(live, followed, share_key_of(request), first, read_next, _KEEP_ALIVE)

    return [
        space_route(
            repos,
            "GET",
            f"/logs/{kind}",
            Action.REPO_CONFIGURE,
            partial(follow, kind=kind),
            f"The log of {what}, live",
            _ANSWERS,
            query=(_FOLLOW,),
        )
        for kind, what in ((BUILD, "a Space's latest build"), (RUN, "a Space's app"))
    ]


async def read_part(spaces: Spaces, repo_id: str, kind: str, cursor: int) -> Part:
    """The next lines after a number, encoded as events."""
    lines = await spaces.db.read(lambda tx: logs_store.read(tx, repo_id, kind, cursor, LINES_PER_PART))
    return Part(b"".join(map(_event, lines)), lines[-1].n if lines else cursor)


async def _stored(spaces: Spaces, repo_id: str, kind: str, cursor: int) -> AsyncGenerator[bytes, None]:
    while True:
        part = await read_part(spaces, repo_id, kind, cursor)
        yield part.data
        if part.cursor == cursor:
            return
        cursor = part.cursor


def _event(line: Line) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (line.n, msgspec.json.encode(LogLine(f"{line.text}\n", iso(line.at), line.n)))


def _cursor(given: str | None) -> int:
    """The number of the last line that the client has."""
    return int(given) if given and given.isascii() and given.isdigit() and len(given) < _LONGEST_NUMBER else 0
