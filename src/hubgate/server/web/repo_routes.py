"""Helpers that create the routes about one repo, one route per repo type."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import PARAMETER, Endpoint, Handler, Located, Locator, Missing, Route, Target
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.hub.repos.revision_paths import PathAtRevision, RevisionPath, parse_revision_path

# Responses that every route about a repo can return.
COMMON_ANSWERS: Mapping[int, tuple[str, Any]] = {
    307: ("The repo was renamed; Location has the new address.", None),
    401: ("Repo not found for an anonymous caller, or the token is no longer valid.", None),
    403: ("The token or the role does not permit this.", None),
    404: ("Repo not found, or you may not see it.", None),
}

T = TypeVar("T")

# Response header for a commit that was requested by its id and belongs only to a pull request (attack O72).
PULL_REQUEST_ONLY = "x-pull-request-only"

# Finds the target of a request to a repo, if the permissions depend on more than the address. Called after the check
# of the route's first action, so its errors do not reveal a hidden repo.
FindTarget = Callable[[HubRequest, Repo], Awaitable[Target[T]]]
# Creates the endpoint of a route from the repo type and the route's path for that type.
EndpointForType = Callable[[RepoType, str], Endpoint]


def api_routes(
    method: str, tail: str, endpoint: EndpointForType, summary: str, answers: Mapping[int, tuple[str, Any]], **more: Any
) -> list[Route]:
    """Create a route per repo type under `/api/{type}s/{namespace}/{repo}`."""
    routes = []
    for kind in RepoType:
        path = f"/api/{kind.plural}/{{namespace}}/{{repo}}{tail}"
        about, responses = summary.replace("repo", kind.value, 1), {**COMMON_ANSWERS, **answers}
        routes.append(Route(method, path, endpoint(kind, path), Surface.API, about, answers=responses, **more))
    return routes


def repo_endpoint(repos: Repos, action: Action, handler: Handler[Repo]) -> EndpointForType:
    """Create endpoints for a handler about the repo that the path names."""
    return repo_endpoint_with_target(repos, (action,), _repo_target, handler)


def repo_endpoint_with_target(
    repos: Repos, actions: tuple[Action, ...], find_target: FindTarget[T], handler: Handler[T]
) -> EndpointForType:
    """Create endpoints for a handler whose target is found by `find_target`. The first of the `actions` is checked
    before that, even if the repo is missing; `find_target` chooses which of the others to check.
    """
    action, *further = actions
    on = tuple({kind for declared in actions for kind in declared.rule.on})

    def endpoint(kind: RepoType, path: str) -> Endpoint:
        return Endpoint(
            action, Locator(on, _RepoFinder(repos, kind, _repo_place(path), find_target)), handler, tuple(further)
        )

    return endpoint


async def _repo_target(_: HubRequest, repo: Repo) -> Target[Repo]:
    return Target(repo, repo.as_resource())


class _RepoPlace(NamedTuple):
    """Where a route's path has the repo: the segment `{namespace}`, then `{repo}`, perhaps with a suffix."""

    namespace_at: int
    suffix: str
    # The segment at which a trailing `{…:path}` begins, and its name; None if the path has none.
    rest: tuple[int, str] | None


# Cached: every hub of a process has the same paths.
@cache
def _repo_place(path: str) -> _RepoPlace:
    segments = path.split("/")
    namespace_at = segments.index("{namespace}")
    parameter = PARAMETER.match(segments[-1])
    rest = (len(segments) - 1, parameter[1]) if parameter and parameter[2] else None
    return _RepoPlace(namespace_at, segments[namespace_at + 1].removeprefix("{repo}"), rest)


class _RepoFinder(msgspec.Struct, Generic[T], frozen=True):
    """The `find` of a route about a repo. An object instead of nested functions, which take ten objects each: a hub has
    three hundred of these routes.
    """

    repos: Repos
    kind: RepoType
    place: _RepoPlace
    find_target: FindTarget[T]

    async def __call__(self, request: HubRequest) -> Located[T] | Missing:
        address = self.kind.value, request.param("namespace"), request.param("repo")
        if self.place.rest is None:
            repo = await lookup.find_repo(self.repos, *address)
        else:
            rest = _revision_path(request, *self.place.rest)
            repo, request.state.revision_path = await lookup.find_repo_and_path(self.repos, *address, rest)
        if not isinstance(repo, Repo):
            return Missing(repo)
        # Every check of this request uses this repo, so all ways to read its files respect an accepted request.
        repo = await access_requests.with_access(self.repos, repo, caller_of(request).identity.user_id)
        return Located(repo.as_resource(), partial(self._target, request, repo))

    async def _target(self, request: HubRequest, repo: Repo) -> Target[T]:
        target = await self.find_target(request, repo)
        given = request.param("namespace"), request.param("repo")
        if tuple(map(str.lower, given)) == (repo.owner_name.lower(), repo.name.lower()):
            return target
        at = self.place.namespace_at
        changed = {at: repo.owner_name, at + 1: repo.name + self.place.suffix}
        return msgspec.structs.replace(target, moved_to=_moved_address(request, changed))


def revision_headers(revision: Revision) -> dict[str, str]:
    """Headers of a response about a revision."""
    return {PULL_REQUEST_ONLY: "true"} if revision.in_pull_request else {}


def revision_path_of(request: HubRequest) -> PathAtRevision:
    """The revision and path in a trailing `{…:path}`, found together with the repo."""
    found: PathAtRevision = request.state.revision_path
    return found


def _revision_path(request: HubRequest, at: int, name: str) -> RevisionPath:
    # The first segment is decoded separately: a slash in it was percent-encoded and is part of the revision.
    first = request.scope["raw_path"].split(b"/", at + 1)[at].decode("ascii")
    return parse_revision_path(request.param(name), unquote(first) if "%" in first else first)


def _moved_address(request: HubRequest, changed: Mapping[int, str]) -> str:
    segments = request.scope["raw_path"].decode("ascii").split("/")
    for position, segment in changed.items():
        segments[position] = segment
    query = request.scope["query_string"].decode("latin-1")
    return "/".join(segments) + (f"?{query}" if query else "")
