"""`/discussions` of a repo: the list of discussions and pull requests, and the form that opens one."""

from collections.abc import Mapping
from urllib.parse import urlencode

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.discussions import opening, store
from hubgate.server.hub.discussions.model import check_text, check_title, page_path
from hubgate.server.hub.discussions.store import DiscussionFilter
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.api.repos.comments import TEXT_CAP
from hubgate.server.web.pages.repos.page_context import RepoPageContext, page_number
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import repo_endpoint

ROWS = 50
_TYPES = {"": None, "discussion": False, "pull_request": True}
_STATUSES: Mapping[str, tuple[str, ...] | None] = {
    "": ("draft", "open"),
    "closed": ("closed", "merged"),
    "all": None,
}
TYPE_LABELS = (("", "Everything"), ("discussion", "Discussions"), ("pull_request", "Pull requests"))
STATUS_LABELS = (("", "Open"), ("closed", "Closed"), ("all", "All"))


def routes(base: RepoPageContext) -> list[Route]:
    async def show_list(request: HubRequest, repo: Repo) -> Response:
        query = request.query()
        chosen = {name: query.get(name, "") for name in ("type", "status")}
        search = query.get("search", "").strip()[:200]
        number = page_number(request)
        discussion_filter = DiscussionFilter(
            _TYPES.get(chosen["type"]), _STATUSES.get(chosen["status"], _STATUSES[""]), None, search or None
        )
        found, total = await base.repos.db.read_long(
            lambda tx: store.page(tx, repo.id, discussion_filter, (number - 1) * ROWS, ROWS, pinned_first=True)
        )

        def address(page: int) -> str:
            fields = {**chosen, "search": search, "page": str(page) if page > 1 else ""}
            return "?" + urlencode({name: value for name, value in fields.items() if value})

        return base.show(
            request,
            repo,
            "discussions.html",
            "discussions",
            found=found,
            total=total,
            chosen=chosen,
            search=search,
            is_filtered=bool(search or chosen["type"] or chosen["status"]),
            types=TYPE_LABELS,
            statuses=STATUS_LABELS,
            newer=address(number - 1) if number > 1 else "",
            older=address(number + 1) if number * ROWS < total else "",
        )

    def render_form(request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, **given: str) -> Response:
        values = {"kind": "discussion", "title": "", "description": "", **given}
        return base.show(request, repo, "discussion_new.html", "discussions", errors, given=values)

    async def show_form(request: HubRequest, repo: Repo) -> Response:
        kind = "pull_request" if request.query().get("kind") == "pull_request" else "discussion"
        return render_form(request, repo, kind=kind)

    async def create(request: HubRequest, repo: Repo) -> Response:
        form = request.form_fields
        given = {name: form.get(name) for name in ("kind", "title", "description")}
        errors: dict[str, str] = {}
        for name, check in (("title", check_title), ("description", check_text)):
            try:
                check(given[name])
            except Unprocessable as error:
                errors[name] = error.message
        if errors:
            return render_form(request, repo, errors, **given)
        open_one = opening.open_pull_request if given["kind"] == "pull_request" else opening.open_discussion
        created = await open_one(base.repos, repo, caller_of(request), given["title"], given["description"])
        return base.pages.redirect(page_path(repo, created.num))

    opens = Action.DISCUSSION_OPEN
    return [
        *base.views("/discussions", show_list, "The discussions and pull requests of a repo"),
        *base.routes(
            "GET",
            "/discussions/new",
            repo_endpoint(base.repos, opens, show_form),
            "The form that opens a discussion in a repo",
        ),
        *base.routes(
            "POST",
            "/discussions",
            repo_endpoint(base.repos, opens, create),
            "Open a discussion or pull request in a repo",
            body_cap=TEXT_CAP,
        ),
    ]
