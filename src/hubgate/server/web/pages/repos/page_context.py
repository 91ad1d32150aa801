"""Shared parts of the pages about one repo: permissions, the header with its tabs, the revision picker."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import lookup, store
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import MAIN, Repo, RepoType, is_pull_request
from hubgate.server.storage.database import Tx
from hubgate.server.web.rendering import NO_ERRORS, Pages
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint, revision_path_of

# The picker lists this many branches and tags; others are reached by address.
MAX_REFS = 200
# Later pages are too expensive to compute.
MAX_PAGES = 1_000


class RepoLocation(Struct, frozen=True):
    """A place in a repo: the revision as named in the address, the commit, the path."""

    repo: Repo
    rev: str
    revision: Revision
    path: str = ""

    @property
    def sha(self) -> str:
        return self.revision.sha

    @property
    def crumbs(self) -> list[tuple[str, str]]:
        """The folders of the path, each with the address of its page."""
        parts = self.path.split("/") if self.path else []
        return [(part, self.to("tree", "/".join(parts[: at + 1]))) for at, part in enumerate(parts)]

    def to(self, verb: str, path: str = "") -> str:
        return address(self.repo, verb, self.rev, path)


def address(repo: Repo, verb: str, rev: str, path: str = "") -> str:
    """Return an address in a repo. Slashes in the revision are encoded, to separate it from the path."""
    return f"{repo.path}/{verb}/{quote(rev, safe='')}{'/' if path else ''}{quote(path)}"


class RepoPageContext(Struct, frozen=True):
    pages: Pages
    repos: Repos

    def routes(
        self,
        method: str,
        tail: str,
        endpoint: EndpointForType,
        summary: str,
        *,
        body_cap: int = 16 * KIB,
        **more: Any,
    ) -> list[Route]:
        """Create a route per repo type."""
        routes = []
        for kind in RepoType:
            path = f"/{kind.url_prefix}{{namespace}}/{{repo}}{tail}"
            about = summary.replace("repo", kind.value, 1)
            routes.append(Route(method, path, endpoint(kind, path), Surface.PAGE, about, body_cap=body_cap, **more))
        return routes

    def views(self, tail: str, handler: Handler[Repo], summary: str) -> list[Route]:
        """Create routes of a page for callers who may see the repo."""
        return self.routes("GET", tail, repo_endpoint(self.repos, Action.REPO_SEE, handler), summary)

    def show(
        self,
        request: HubRequest,
        repo: Repo,
        template: str,
        tab: str,
        errors: Mapping[str, str] = NO_ERRORS,
        status: int | None = None,
        **values: Any,
    ) -> Response:
        """Render a page. `tab` is "card", "files", "app", "discussions" or "settings"."""
        tabs = [("card", "Card", repo.path), ("files", "Files", address(repo, "tree", "main"))]
        if repo.repo_type is RepoType.SPACE:
            tabs.append(("app", "App", f"{repo.path}/app"))
        if not repo.discussions_disabled or tab == "discussions":
            tabs.append(("discussions", "Discussions", f"{repo.path}/discussions"))
        if self.may(request, repo, Action.REPO_CONFIGURE):
            tabs.append(("settings", "Settings", f"{repo.path}/settings"))
        return self.pages.page(
            request, f"repo/{template}", status, errors, repo=repo, tab=tab, tabs=tabs, at=repo.path, **values
        )

    def may(self, request: HubRequest, repo: Repo, action: Action) -> bool:
        return decide(caller_of(request).identity, action, repo.as_resource()).allowed

    def may_change(self, request: HubRequest, location: RepoLocation) -> bool:
        """Whether to offer forms that change files here: by a commit, or by a pull request. The forms check again."""
        ref, repo = location.revision.ref or "", location.repo
        if not ref.startswith("refs/heads/"):
            return is_pull_request(ref) and self.may(request, repo, Action.REPO_WRITE)
        proposes = not repo.discussions_disabled and self.may(request, repo, Action.DISCUSSION_OPEN)
        return proposes or self.may(request, repo, Action.REPO_WRITE)

    async def location(self, request: HubRequest, repo: Repo) -> RepoLocation:
        """The revision and path at the end of the address."""
        at = revision_path_of(request)
        return RepoLocation(repo, at.rev, await self.revision(repo, at.rev), at.path.strip("/"))

    async def revision(self, repo: Repo, rev: str) -> Revision:
        try:
            return await lookup.revision(self.repos, repo, rev)
        except NotFound:
            raise NotFound(f"{repo.full_name} has no branch, tag or commit {rev[:200]}.") from None

    async def picker(self, location: RepoLocation) -> dict[str, Any]:
        """Values for the picker in parts/repos.html: the branches and tags, and always the current revision."""

        async def read(tx: Tx) -> tuple[list[str], list[str]]:
            branches = await store.ref_names(tx, location.repo.id, "heads", MAX_REFS)
            return branches, await store.ref_names(tx, location.repo.id, "tags", MAX_REFS)

        branches, tags = await self.repos.db.read_long(read)
        branches.sort(key=lambda name: name != MAIN.removeprefix("refs/heads/"))
        known = location.rev in branches or location.rev in tags
        return {"branches": branches, "tags": tags, "other": "" if known else location.rev}


def page_number(request: HubRequest) -> int:
    """Return the number in `?page=`, from 1 to MAX_PAGES; any other value raises NotFound."""
    text = request.query().get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    if not 1 <= number <= MAX_PAGES:
        raise NotFound("Page not found in this list.")
    return number
