"""Routes for `git clone`, `fetch` and `push`, with and without `.git` (gitprotocol-http)."""

from collections.abc import AsyncGenerator

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of, share_key_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.resource import Post
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import MIB, Check, Query, Route, Target
from hubgate.server.errors import Forbidden, NotFound, UnsupportedMedia
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.git import ls_refs, pktline, receive_pack, upload_pack
from hubgate.server.hub.git.pktline import LineReader
from hubgate.server.hub.git.receive_pack import PushOutcome
from hubgate.server.hub.git.unpack import MAX_PACK_BYTES
from hubgate.server.hub.guests import marked_commits
from hubgate.server.hub.repos import copied_refs, push, store
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.jobs.slots import Slots
from hubgate.server.storage.database import Tx
from hubgate.server.web.git.streams import FetchResponse, PushResponse, RequestBody, start_message
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint, repo_endpoint_with_target

UPLOAD_PACK, RECEIVE_PACK = "git-upload-pack", "git-receive-pack"
# Size of one fetch request: a client with a hundred thousand refs sends five megabytes.
LARGEST_FETCH_REQUEST = 32 * MIB
LARGEST_PUSH = MAX_PACK_BYTES + receive_pack.MAX_COMMAND_BYTES
# For the first bytes; a large body gets more time (http/intake.py).
BODY_SECONDS = 120.0

_PUSH = (Action.REPO_SEE, Action.REPO_WRITE, Action.DISCUSSION_PUSH)
_SERVICE = Query("service", f"{UPLOAD_PACK} to fetch, {RECEIVE_PACK} to push", required=True)
_SMART_ONLY = "This hub speaks git's smart protocol only. Use git 1.6.6 or newer, over http or https."


def routes(repos: Repos, guard: Guard) -> list[Route]:
    git = _Git(repos, guard, fetches=Slots(64, 16, max_per_repo=32), pushes=Slots(32, 16, max_per_repo=24))
    return [route for kind in RepoType for ending in ("", ".git") for route in git.routes(kind, ending)]


class _Git(Struct, frozen=True):
    repos: Repos
    guard: Guard
    fetches: Slots
    pushes: Slots

    def routes(self, kind: RepoType, ending: str) -> list[Route]:
        at = f"/{kind.url_prefix}{{namespace}}/{{repo}}{ending}"
        responses = {200: ("In git's own format.", None)}

        def post(service: str, endpoint: EndpointForType, summary: str, cap: int) -> Route:
            path = f"{at}/{service}"
            return Route(
                "POST",
                path,
                endpoint(kind, path),
                Surface.GIT,
                summary,
                answers=responses,
                body_cap=cap,
                body_seconds=BODY_SECONDS,
                streams=True,
            )

        refs, repos = f"{at}/info/refs", self.repos
        fetch = repo_endpoint(repos, Action.REPO_READ_CONTENT, self._fetch)
        receive = repo_endpoint_with_target(repos, _PUSH, self._push_target, self._push)
        return [
            Route(
                "GET",
                refs,
                repo_endpoint_with_target(repos, (*_PUSH, Action.REPO_READ_CONTENT), self._refs_target, self._refs)(
                    kind, refs
                ),
                Surface.GIT,
                f"Branches and tags of a {kind.value}, for git",
                query=(_SERVICE,),
                answers={**responses, 307: ("The repo was renamed; Location has the new address.", None)},
            ),
            post(UPLOAD_PACK, fetch, f"Fetch from a {kind.value} with git", LARGEST_FETCH_REQUEST),
            post(RECEIVE_PACK, receive, f"Push to a {kind.value} with git", LARGEST_PUSH),
        ]

    async def _refs_target(self, request: HubRequest, repo: Repo) -> Target[Repo]:
        if _service(request) == RECEIVE_PACK:
            return await self._push_target(request, repo)
        repo_resource = repo.as_resource()
        return Target(repo, repo_resource, further_checks=((Check(Action.REPO_READ_CONTENT, repo_resource),),))

    async def _push_target(self, request: HubRequest, repo: Repo) -> Target[Repo]:
        """Require write access, or an open pull request by the caller. The push itself checks each ref."""
        user_id, repo_resource = caller_of(request).identity.user_id, repo.as_resource()
        pull_request = await discussions.latest_open_pull_request(self.repos.db, repo.id, user_id) if user_id else None
        writing = Check(Action.REPO_WRITE, repo_resource)
        push_to_own = (
            (Check(Action.DISCUSSION_PUSH, Post(repo_resource, pull_request.author_id)),) if pull_request else ()
        )
        hint = "" if pull_request else "You have no open pull request in this repo either."
        return Target(repo, repo_resource, further_checks=((writing, *push_to_own),), hint=hint)

    async def _refs(self, request: HubRequest, repo: Repo) -> ASGIApp:
        service = _service(request)
        if service == UPLOAD_PACK:
            advertised = await self._fetch_advertisement(request, repo)
            # Protocol version 2 has no service announcement.
            head = b"" if advertised.startswith(pktline.line(b"version 2\n")) else _announcement(service)
        else:
            identity = caller_of(request).identity
            head, advertised = _announcement(service), await push.advertisement(self.repos, repo, identity)
        start = start_message(f"application/x-{service}-advertisement")
        return Response(head + advertised, headers={name.decode(): value.decode() for name, value in start["headers"]})

    async def _fetch_advertisement(self, request: HubRequest, repo: Repo) -> bytes:
        known = upload_pack.known_advertisement(_protocol(request))
        if known is not None:
            return known
        async with self.fetches.acquire(share_key_of(request), repo.id):
            folder = await copied_refs.refresh(self.repos, repo.id)
            return await upload_pack.advertisement(folder, _protocol(request))

    async def _fetch(self, request: HubRequest, repo: Repo) -> ASGIApp:
        _check_type(request, UPLOAD_PACK)
        body = RequestBody(request, LARGEST_FETCH_REQUEST)

        async def parts() -> AsyncGenerator[bytes, None]:
            whole = aiter(body)
            if _protocol(request) == upload_pack.VERSION_2:
                message, whole = await ls_refs.read_ahead(whole)
                if (listed := await self._listed_refs(repo, message)) is not None:
                    yield listed
                    return
            folder = await copied_refs.refresh(self.repos, repo.id)
            wants = marked_commits.reject_removed_commits(self.repos, repo, whole)
            answer = upload_pack.answer(folder, _protocol(request), wants)
            try:
                async for content in answer:
                    yield content
            finally:
                await answer.aclose()

        slot, stall = self.fetches.acquire(share_key_of(request), repo.id), self.repos.limits.stall_seconds
        return FetchResponse(slot, parts, f"application/x-{UPLOAD_PACK}-result", stall)

    async def _listed_refs(self, repo: Repo, message: bytes) -> bytes | None:
        """The answer to a message that only asks for refs."""
        query = ls_refs.parse(message)
        if query is None:
            return None

        async def read(tx: Tx) -> list[ls_refs.Ref]:
            refs = await store.refs(tx, repo.id, ls_refs.MAX_REFS + 1)
            # A client must not take a repo that another request has deleted for an empty one: with --prune it would
            # delete its own branches.
            if not refs and await store.refs_version(tx, repo.id) is None:
                raise NotFound("Repository not found", code="RepoNotFound")
            return refs

        refs = await self.repos.db.read_long(read)
        return await ls_refs.answer(self.repos.folders.of(repo.id), refs, query)

    async def _push(self, request: HubRequest, repo: Repo) -> ASGIApp:
        _check_type(request, RECEIVE_PACK)
        body = RequestBody(request, LARGEST_PUSH)
        lines = LineReader(aiter(body))
        commands = await receive_pack.read_commands(lines)
        if not commands.changes:
            # Clients probe their credentials with a lone flush packet before they send a large pack.
            return Response(b"", media_type=f"application/x-{RECEIVE_PACK}-result")
        identity = caller_of(request).identity

        async def current_identity() -> Identity:
            return (await self.guard.reload_caller(request)).identity

        async def work() -> PushOutcome:
            async with self.pushes.acquire(share_key_of(request), repo.id):
                return await push.push(self.repos, repo, identity, commands, lines.rest(), current_identity)

        return PushResponse(commands, work, lambda: body.ended, self.repos.limits.keepalive_seconds)


def _service(request: HubRequest) -> str:
    service = request.query().get("service", "")
    if service not in (UPLOAD_PACK, RECEIVE_PACK):
        raise Forbidden(_SMART_ONLY)
    return service


def _protocol(request: HubRequest) -> str:
    return request.headers.get("git-protocol", "")


def _announcement(service: str) -> bytes:
    return pktline.line(f"# service={service}\n".encode()) + pktline.FLUSH


def _check_type(request: HubRequest, service: str) -> None:
    expected = f"application/x-{service}-request"
    if request.content_type != expected:
        raise UnsupportedMedia(f"Send the body as {expected}.")
