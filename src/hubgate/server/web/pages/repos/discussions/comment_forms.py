"""The forms of one comment: edit, hide, react."""

from collections.abc import Mapping

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Handler, Route
from hubgate.server.errors import Conflict, Forbidden, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.discussions import comments
from hubgate.server.web.api.repos.comments import TEXT_CAP
from hubgate.server.web.discussion_targets import DiscussionComment, comment_endpoint
from hubgate.server.web.pages.repos.discussions.conversation import entry_path
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS


def routes(base: RepoPageContext) -> list[Route]:
    repos = base.repos

    def place_of(found: DiscussionComment) -> str:
        return entry_path(found.repo, found.discussion, found.comment)

    def show(
        request: HubRequest,
        found: DiscussionComment,
        template: str,
        text: str,
        errors: Mapping[str, str] = NO_ERRORS,
        status: int | None = None,
    ) -> Response:
        return base.show(
            request,
            found.repo,
            template,
            "discussions",
            errors,
            status,
            discussion=found.discussion,
            comment=found.comment,
            back_to=place_of(found),
            text=text,
        )

    async def show_edit(request: HubRequest, found: DiscussionComment) -> Response:
        return show(request, found, "comment_edit.html", found.comment.text)

    async def edit(request: HubRequest, found: DiscussionComment) -> Response:
        text = request.form_fields.get("content")
        try:
            await comments.edit(repos, found.repo, found.discussion, found.comment, caller_of(request), text)
        except (Unprocessable, Conflict, Forbidden) as error:
            return show(request, found, "comment_edit.html", text, {"content": error.message}, error.status)
        return base.pages.redirect(place_of(found))

    async def confirm_hiding(request: HubRequest, found: DiscussionComment) -> Response:
        return show(request, found, "comment_hide.html", found.comment.text)

    async def hide(request: HubRequest, found: DiscussionComment) -> Response:
        await comments.hide(repos, found.repo, found.discussion, found.comment, caller_of(request))
        return base.pages.redirect(place_of(found), "The comment is hidden.")

    async def react(request: HubRequest, found: DiscussionComment) -> Response:
        reaction, caller = request.form_fields.get("reaction"), caller_of(request)
        await comments.react(repos, found.repo, found.discussion, found.comment, caller, reaction)
        return base.pages.redirect(place_of(found))

    def route(method: str, tail: str, action: Action, handler: Handler[DiscussionComment], summary: str) -> list[Route]:
        endpoint = comment_endpoint(repos, action, handler)
        return base.routes(method, f"/discussions/{{num}}/comment/{{cid}}/{tail}", endpoint, summary, body_cap=TEXT_CAP)

    edits, closes = Action.DISCUSSION_EDIT, Action.DISCUSSION_CLOSE
    return [
        *route("GET", "edit", edits, show_edit, "The form that edits a comment in a repo's discussion"),
        *route("POST", "edit", edits, edit, "Edit a comment in a repo's discussion"),
        *route("GET", "hide", closes, confirm_hiding, "Confirm hiding a comment in a repo's discussion"),
        *route("POST", "hide", closes, hide, "Hide a comment in a repo's discussion"),
        *route("POST", "reaction", Action.DISCUSSION_COMMENT, react, "React to a comment in a repo's discussion"),
    ]
