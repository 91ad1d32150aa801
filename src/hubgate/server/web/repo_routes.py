"""Routes about one repo: three each, one for every type. Each finds it, judges, and leads on from a former name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Handler, Route
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import finding
from hubgate.server.hub.repos.model import Repo, RepoType

OfRepo = Callable[[HubRequest, Repo], Awaitable[ASGIApp]]

# What every answer about a repo may be.
REFUSALS: Mapping[int, tuple[str, Any]] = {
    307: ("The repo was renamed: it is there.", None),
    401: ("There is no such repo for an anonymous caller, or the token is no longer good.", None),
    403: ("The token or the role does not reach this far.", None),
    404: ("There is no such repo, or it is hidden from you.", None),
}


def api_routes(
    repos: Repos,
    method: str,
    tail: str,
    handler: OfRepo,
    action: Action,
    summary: str,
    answers: Mapping[int, tuple[str, Any]],
    **more: Any,
) -> list[Route]:
    """Under `/api/{type}s/{namespace}/{repo}`."""
    routes = []
    for kind in RepoType:
        path = f"/api/{kind.plural}/{{namespace}}/{{repo}}{tail}"
        handle = at_repo(repos, kind, path, action, handler)
        said = {**REFUSALS, **answers}
        about = summary.replace("repo", kind.value, 1)
        routes.append(Route(method, path, handle, Surface.API, action.rule.name, about, answers=said, **more))
    return routes


def at_repo(repos: Repos, kind: RepoType, path: str, action: Action, handler: OfRepo) -> Handler:
    """`path` has the segments `{namespace}` and, right after it, `{repo}`, perhaps with an ending."""
    segments = path.split("/")
    namespace_at = segments.index("{namespace}")
    repo_at = namespace_at + 1
    takes_rest = segments[-1].endswith(":path}")

    async def handle(request: HubRequest) -> ASGIApp:
        namespace, name = request.param("namespace"), request.param("repo")
        if takes_rest:
            sent = request.scope["raw_path"].decode("ascii").split("/")
            request.state.first_of_rest = unquote(sent[len(segments) - 1])
        identity = caller_of(request).identity
        repo = await finding.find(repos, identity, action, kind.value, namespace, name)
        if request.method in ("GET", "HEAD") and (namespace.lower(), name.lower()) != _key(repo):
            ending = segments[repo_at].removeprefix("{repo}")
            return _led_to(request, {namespace_at: repo.owner_name, repo_at: repo.name + ending})
        return await handler(request, repo)

    return handle


def first_of_rest(request: HubRequest) -> str:
    """The first segment of what `{…:path}` stands for at the end of a route, decoded by itself: a slash in it was
    encoded, and belongs to a revision.
    """
    first: str = getattr(request.state, "first_of_rest", "")
    return first


def _key(repo: Repo) -> tuple[str, str]:
    return repo.owner_name.lower(), repo.name.lower()


def _led_to(request: HubRequest, changed: Mapping[int, str]) -> Response:
    """307, which existing clients follow with method and body."""
    segments = request.scope["raw_path"].decode("ascii").split("/")
    for position, segment in changed.items():
        segments[position] = segment
    query = request.scope["query_string"].decode("latin-1")
    return RedirectResponse("/".join(segments) + (f"?{query}" if query else ""), 307)
