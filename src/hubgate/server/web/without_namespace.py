"""Repos without a namespace, such as `gpt2`: there are none, and clients are told so as of any other repo that is not
there. Without the code of that answer they take it for a broken connection.
"""

from typing import Never

from starlette.types import ASGIApp

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Endpoint, Locator, Missing, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos.model import RepoType

# What clients ask of a repo, with more to follow. `/api/models/gpt2/refs` is taken for the repo `refs` of `gpt2`, which
# is not there either.
ASKED = (
    *(("GET", verb) for verb in ("commits", "revision", "tree", "xet-write-token")),
    *(("POST", verb) for verb in ("branch", "commit", "paths-info", "preupload", "super-squash", "tag")),
    *(("DELETE", verb) for verb in ("branch", "tag")),
)


def info(kind: RepoType) -> Route:
    return _route(kind, "GET", f"/api/{kind.plural}/{{repo}}", Surface.API, otherwise=False)


def routes() -> list[Route]:
    """All others, undocumented. A namespace may have a repo called `tree`: they are for what no other route fits."""
    return [
        *(
            _route(kind, method, f"/api/{kind.plural}/{{repo}}/{verb}/{{rest:path}}", Surface.API, otherwise=True)
            for kind in RepoType
            for method, verb in ASKED
        ),
        # Those of datasets and spaces are taken for repos of the namespaces `datasets` and `spaces`, which nobody has.
        *(
            _route(RepoType.MODEL, "GET", f"/{{repo}}/{verb}/{{rest:path}}", Surface.FILE, otherwise=True)
            for verb in ("resolve", "raw")
        ),
    ]


def _route(kind: RepoType, method: str, path: str, surface: Surface, *, otherwise: bool) -> Route:
    return Route(
        method,
        path,
        _REFUSED,
        surface,
        f"A {kind.value} without a namespace: there are none",
        answers={401: ("To an anonymous caller.", None), 404: ("To everyone else.", None)},
        otherwise=otherwise,
    )


async def _nothing(_: HubRequest) -> Missing:
    return Missing(resource.Repo.missing())


async def _unreachable(_: HubRequest, __: Never) -> ASGIApp:
    raise AssertionError("a repo that does not exist is refused before its handler")


_REFUSED = Endpoint(Action.REPO_SEE, Locator((resource.Repo,), _nothing), _unreachable)
