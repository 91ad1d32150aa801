"""The addresses that `git clone`, `fetch` and `push` use, with and without `.git` (gitprotocol-http)."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of, share_of
from hubgate.server.access.guard import Guard
from hubgate.server.access.identity import Identity
from hubgate.server.errors import Forbidden, UnsupportedMedia
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import MIB, Handler, Query, Route
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import pktline, receiving, serving
from hubgate.server.hub.git.pktline import LineReader
from hubgate.server.hub.git.receiving import Outcome
from hubgate.server.hub.git.slots import Slots
from hubgate.server.hub.git.unpacking import MOST_PACK_BYTES
from hubgate.server.hub.repos import copied_refs, finding, push_rights, pushing
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.web.git.answers import Fetched, Pushed, begun
from hubgate.server.web.git.bodies import Body

UPLOAD_PACK, RECEIVE_PACK = "git-upload-pack", "git-receive-pack"
# What a fetch may ask in one request: a client with a hundred thousand refs has five megabytes to say.
MOST_ASKED = 32 * MIB
MOST_PUSHED = MOST_PACK_BYTES + receiving.MOST_SAID
# For the first bytes; a large body gets more (http/intake.py).
BODY_SECONDS = 120.0

_SERVICE = Query("service", f"{UPLOAD_PACK} to fetch, {RECEIVE_PACK} to push", required=True)
_DUMB = "This hub speaks git's smart protocol only. Use git 1.6.6 or newer, over http or https."


def routes(repos: Repos, guard: Guard) -> list[Route]:
    git = _Git(repos, guard, fetches=Slots(64, 16, most_of_repo=32), pushes=Slots(32, 16, most_of_repo=24))
    return [route for kind in RepoType for ending in ("", ".git") for route in git.routes(kind, ending)]


@dataclass(frozen=True)
class _Git:
    repos: Repos
    guard: Guard
    fetches: Slots
    pushes: Slots

    def routes(self, kind: RepoType, ending: str) -> list[Route]:
        at = f"/{kind.folder}{{namespace}}/{{repo}}{ending}"
        read, write = Action.REPO_READ_CONTENT.rule.name, Action.REPO_WRITE.rule.name
        said = {200: ("In git's own format.", None)}

        def post(service: str, handler: Handler, action: str, summary: str, cap: int) -> Route:
            return Route(
                "POST",
                f"{at}/{service}",
                handler,
                Surface.GIT,
                action,
                summary,
                answers=said,
                body_cap=cap,
                body_seconds=BODY_SECONDS,
            )

        return [
            Route(
                "GET",
                f"{at}/info/refs",
                partial(self._refs, kind, ending),
                Surface.GIT,
                read,
                f"Branches and tags of a {kind.value}, for git",
                query=(_SERVICE,),
                answers={**said, 307: ("The repo was renamed: it is there.", None)},
            ),
            post(UPLOAD_PACK, partial(self._fetch, kind), read, f"What git fetch asks of a {kind.value}", MOST_ASKED),
            post(
                RECEIVE_PACK,
                partial(self._push, kind),
                write,
                f"What git push sends to a {kind.value}",
                MOST_PUSHED,
            ),
        ]

    async def _refs(self, kind: RepoType, ending: str, request: HubRequest) -> ASGIApp:
        service = request.query().get("service")
        if service not in (UPLOAD_PACK, RECEIVE_PACK):
            raise Forbidden(_DUMB)
        repo = await (self._readable(kind, request) if service == UPLOAD_PACK else self._pushable(kind, request))
        if moved := _led_on(request, kind, ending, repo):
            return moved
        if service == UPLOAD_PACK:
            async with self.fetches.taken(share_of(request), repo.id):
                folder = await copied_refs.refresh(self.repos, repo.id)
                said = await serving.advertisement(folder, _protocol(request))
            # Version 2 begins by itself.
            head = b"" if said.startswith(pktline.line(b"version 2\n")) else _announced(service)
        else:
            head, said = _announced(service), await pushing.advertisement(self.repos, repo)
        start = begun(f"application/x-{service}-advertisement")
        return Response(head + said, headers={name.decode(): value.decode() for name, value in start["headers"]})

    async def _fetch(self, kind: RepoType, request: HubRequest) -> ASGIApp:
        _check_type(request, UPLOAD_PACK)
        repo = await self._readable(kind, request)
        body = Body(request, MOST_ASKED)

        async def parts() -> AsyncGenerator[bytes, None]:
            folder = await copied_refs.refresh(self.repos, repo.id)
            answer = serving.answer(folder, _protocol(request), aiter(body))
            try:
                async for content in answer:
                    yield content
            finally:
                await answer.aclose()

        slot, stall = self.fetches.taken(share_of(request), repo.id), self.repos.limits.stall_seconds
        return Fetched(slot, parts, f"application/x-{UPLOAD_PACK}-result", stall)

    async def _push(self, kind: RepoType, request: HubRequest) -> ASGIApp:
        _check_type(request, RECEIVE_PACK)
        repo = await self._pushable(kind, request)
        body = Body(request, MOST_PUSHED)
        lines = LineReader(aiter(body))
        asked = await receiving.read_commands(lines)
        if not asked.changes:
            # A client tries its credentials with a lone flush before it sends a large pack.
            return Response(b"", media_type=f"application/x-{RECEIVE_PACK}-result")
        identity = caller_of(request).identity

        async def again() -> Identity:
            return (await self.guard.again(request)).identity

        async def work() -> Outcome:
            async with self.pushes.taken(share_of(request), repo.id):
                return await pushing.push(self.repos, repo, identity, asked, lines.rest(), again)

        return Pushed(asked, work, lambda: body.ended, self.repos.limits.silent_seconds)

    async def _readable(self, kind: RepoType, request: HubRequest) -> Repo:
        return await finding.find(
            self.repos, _identity(request), Action.REPO_READ_CONTENT, kind.value, *_named(request)
        )

    async def _pushable(self, kind: RepoType, request: HubRequest) -> Repo:
        return await push_rights.find_for_push(self.repos, _identity(request), kind.value, *_named(request))


def _identity(request: HubRequest) -> Identity:
    return caller_of(request).identity


def _named(request: HubRequest) -> tuple[str, str]:
    return request.param("namespace"), request.param("repo")


def _protocol(request: HubRequest) -> str:
    return request.headers.get("git-protocol", "")


def _announced(service: str) -> bytes:
    return pktline.line(f"# service={service}\n".encode()) + pktline.FLUSH


def _check_type(request: HubRequest, service: str) -> None:
    wanted = f"application/x-{service}-request"
    if request.content_type != wanted:
        raise UnsupportedMedia(f"Send this as {wanted}.")


def _led_on(request: HubRequest, kind: RepoType, ending: str, repo: Repo) -> Response | None:
    """From a former name to where the repo is: git follows, and keeps to it for the rest of what it does."""
    namespace, name = _named(request)
    if (namespace.lower(), name.lower()) == (repo.owner_name.lower(), repo.name.lower()):
        return None
    query = request.scope["query_string"].decode("latin-1")
    return RedirectResponse(f"/{kind.folder}{repo.full_name}{ending}/info/refs?{query}", 307)
