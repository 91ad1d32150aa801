"""Routes for repos without a namespace, such as `gpt2`. This hub has none: clients get the same response as for any
missing repo. Without the error code of that response, they report a broken connection.
"""

from typing import Never

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Endpoint, Locator, Missing, Route
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos.model import RepoType

# Methods and verbs that clients use on a repo, followed by more segments. `/api/models/gpt2/refs` is parsed as the repo
# `refs` of `gpt2`, which does not exist either.
REQUESTS = (
    *(("GET", verb) for verb in ("commits", "compare", "revision", "tree", "xet-read-token", "xet-write-token")),
    *(("POST", verb) for verb in ("branch", "commit", "paths-info", "preupload", "super-squash", "tag")),
    *(("DELETE", verb) for verb in ("branch", "tag")),
)


def info_route(kind: RepoType) -> Route:
    return _route(kind, "GET", f"/api/{kind.plural}/{{repo}}", Surface.API, is_fallback=False)


def routes() -> list[Route]:
    """The routes other than `info_route`, undocumented. A namespace may have a repo called `tree`, so these match only
    if no other route does.
    """
    return [
        *(
            _route(kind, method, f"/api/{kind.plural}/{{repo}}/{verb}/{{rest:path}}", Surface.API, is_fallback=True)
            for kind in RepoType
            for method, verb in REQUESTS
        ),
        # For datasets and spaces these paths are parsed as repos of the namespaces `datasets` and `spaces`, which no
        # account has.
        *(
            _route(RepoType.MODEL, "GET", f"/{{repo}}/{verb}/{{rest:path}}", Surface.FILE, is_fallback=True)
            for verb in ("resolve", "raw")
        ),
    ]


def _route(kind: RepoType, method: str, path: str, surface: Surface, *, is_fallback: bool) -> Route:
    return Route(
        method,
        path,
        _NOT_FOUND,
        surface,
        f"A {kind.value} without a namespace: not supported",
        answers={401: ("Repo not found, for an anonymous caller.", None), 404: ("Repo not found.", None)},
        is_fallback=is_fallback,
    )


async def _missing_repo(_: HubRequest) -> Missing:
    return Missing(resource.Repo.missing())


async def _unreachable(_: HubRequest, __: Never) -> ASGIApp:
    raise AssertionError("a missing repo is rejected before the handler runs")


_NOT_FOUND = Endpoint(Action.REPO_SEE, Locator((resource.Repo,), _missing_repo), _unreachable)
