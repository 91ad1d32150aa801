"""Pages about the gate of a repo: asking for access, and `/settings/access`, where writers decide about requests."""

from collections.abc import Mapping

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.edge.routes import Handler, Route
from hubgate.server.errors import BadRequest, NotFound
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.gating import access_requests, review, store
from hubgate.server.hub.gating.model import ACCEPTED, PENDING, REJECTED, STATUSES, GateForm, OwnAccess, gate_form
from hubgate.server.hub.gating.review import RESET, Requester
from hubgate.server.hub.gating.store import RequestFilter
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint

ROWS = 50
# The buttons of a request by its status: the next status and its label.
DECISIONS = {
    PENDING: ((ACCEPTED, "Accept"), (REJECTED, "Reject")),
    ACCEPTED: ((REJECTED, "Revoke access"),),
    REJECTED: ((ACCEPTED, "Accept"), (RESET, "Let them ask again")),
}
_DONE = {ACCEPTED: "has access now", REJECTED: "has no access", PENDING: "is waiting again", RESET: "can ask again"}


class GatePanel(Struct, frozen=True):
    """The panel on a gated repo's card about the visitor's access. `status` is that of the visitor's request, or
    "signed out" or "none".
    """

    status: str
    form: GateForm
    reason: str = ""


async def gate_panel(base: RepoPageContext, request: HubRequest, repo: Repo) -> GatePanel | None:
    """The panel for the repo's card; None if the visitor can read the files without asking."""
    user_id = caller_of(request).identity.user_id
    if not repo.gated or repo.private:
        return None
    if user_id is None:
        return GatePanel("signed out", gate_form(repo))
    if not repo.granted and base.may(request, repo, Action.REPO_READ_CONTENT):
        return None
    found = await store.of_user(base.repos.db, repo.id, user_id)
    return GatePanel(found.status, gate_form(repo), found.reason) if found else GatePanel("none", gate_form(repo))


def routes(base: RepoPageContext) -> list[Route]:
    return [*_asking_routes(base), *_review_routes(base)]


def _asking_routes(base: RepoPageContext) -> list[Route]:
    repos = base.repos

    async def ask(request: HubRequest, repo: Repo) -> Response:
        if repo.gated and base.may(request, repo, Action.REPO_READ_CONTENT):
            return base.pages.redirect(repo.path, f"You have access to {repo.full_name}.")
        by_session = caller_of(request).session is not None
        form = gate_form(repo)
        if by_session and repo.gated and request.form_fields.get("form") != form.digest:
            return base.pages.redirect(repo.path, "The questions have changed. Read them and ask again.")
        answers = _answers(form, request.form_fields) if by_session else await _answers_by_name(request)
        found = await access_requests.ask(repos, repo, caller_of(request).user, answers)
        done = {
            ACCEPTED: f"You have access to {repo.full_name}.",
            PENDING: f"You asked for access. @{repo.owner_name} has not decided yet.",
            REJECTED: f"@{repo.owner_name} has already rejected your request.",
        }
        return base.pages.redirect(repo.path, done[found.status])

    async def cancel(request: HubRequest, repo: Repo) -> Response:
        await access_requests.cancel(repos, repo, caller_of(request).user)
        return base.pages.redirect(repo.path, "Your request was withdrawn.")

    def endpoint(handler: Handler[Repo]) -> EndpointForType:
        return repo_endpoint(repos, Action.REPO_ASK_ACCESS, handler)

    return [
        *base.routes("POST", "/ask-access", endpoint(ask), "Ask for access to a gated repo", accepts_token=True),
        *base.routes("POST", "/ask-access/cancel", endpoint(cancel), "Withdraw a request for access to a repo"),
    ]


def _answers(form: GateForm, fields: Fields) -> dict[str, str]:
    """The answers, from fields named by the number of the question: its text could be the name of another field."""
    return {question.name: fields.get(f"answer{number}") for number, question in enumerate(form.questions)}


async def _answers_by_name(request: HubRequest) -> dict[str, str]:
    """The answers of a script, by question, as JSON or as a form."""
    if request.content_type == "application/json":
        return await request.read_json(dict[str, str])
    return (await request.read_form()).to_dict()


def _review_routes(base: RepoPageContext) -> list[Route]:
    repos = base.repos

    async def render(request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS) -> Response:
        query = request.query() if request.method == "GET" else {}
        status = query.get("status", PENDING)
        status = status if status in STATUSES else PENDING
        at = f"{repo.path}/settings/access"
        list_query = ListQuery(query, at, other_parameters={"status": status if status != PENDING else ""})
        request_filter = RequestFilter(status, list_query.search)
        page = await review.list_requests(repos, repo, request_filter, list_query.page(review.CURSOR, ROWS))
        counts = await repos.db.read_long(lambda tx: store.counts(tx, repo.id))
        return base.show(
            request,
            repo,
            "access.html",
            "settings",
            errors,
            path=at,
            found=page.items,
            listed_status=status,
            states=[
                (f"{at}?status={each}", f"{each.capitalize()} {counts.get(each, 0):,}", each == status)
                for each in STATUSES
            ],
            decisions=DECISIONS[status],
            may_decide=base.may(request, repo, Action.REPO_MANAGE),
            typed=request.form_fields.get("user") if errors else "",
            **list_query.template_values(page.next_cursor),
        )

    async def show(request: HubRequest, repo: Repo) -> Response:
        return await render(request, repo)

    async def handle(request: HubRequest, repo: Repo) -> Response:
        form = request.form_fields
        user, status, reason = form.get("user"), form.get("status"), form.get("reason")
        back = return_address(request, f"{repo.path}/settings/access")
        try:
            await review.handle(repos, repo, Requester(user), status, actor_of(request), reason)
        except (NotFound, OwnAccess) as error:
            return base.pages.redirect(back, error.message)
        return base.pages.redirect(back, f"{user} {_DONE[status]}.")

    async def grant(request: HubRequest, repo: Repo) -> Response:
        user = request.form_fields.get("user").strip()
        try:
            await review.grant(repos, repo, Requester(user), actor_of(request))
        except (NotFound, BadRequest) as error:
            return await render(request, repo, {"user": error.message})
        return base.pages.redirect(f"{repo.path}/settings/access?status={ACCEPTED}", f"{user} {_DONE[ACCEPTED]}.")

    tail, manage = "/settings/access", Action.REPO_MANAGE
    return [
        *base.routes(
            "GET", tail, repo_endpoint(repos, Action.REPO_READ_REQUESTS, show), "Requests for access to a repo"
        ),
        *base.routes(
            "POST",
            f"{tail}/handle",
            repo_endpoint(repos, manage, handle),
            "Decide about a request for access to a repo",
        ),
        *base.routes("POST", f"{tail}/grant", repo_endpoint(repos, manage, grant), "Grant a user access to a repo"),
    ]
