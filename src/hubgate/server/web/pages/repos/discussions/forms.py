"""The forms on a conversation: comment, status, title, merge, pin and deletion."""

from typing import Literal

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Handler, Route
from hubgate.server.errors import Conflict, Forbidden, HubError, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.discussions import changes, comments, merging, removal
from hubgate.server.hub.discussions.entries.model import Conversation
from hubgate.server.hub.discussions.model import page_path
from hubgate.server.web.api.repos.comments import TEXT_CAP
from hubgate.server.web.discussion_targets import RepoDiscussion, discussion_endpoint
from hubgate.server.web.pages.repos.discussions.conversation import entry_path, render
from hubgate.server.web.pages.repos.page_context import RepoPageContext


def routes(base: RepoPageContext) -> list[Route]:
    repos = base.repos

    async def show_again(request: HubRequest, found: RepoDiscussion, field: str, error: HubError) -> Response:
        """Show the conversation with the error of a form and the values that were sent."""
        form = request.form_fields
        given = {name: form.get(name) for name in ("comment", "title") if form.get(name)}
        return await render(base, request, found, {field: error.message}, error.status, **given)

    def to_entry(found: RepoDiscussion, added: Conversation) -> Response:
        return base.pages.redirect(entry_path(found.repo, found.discussion, added.entries[0]))

    async def comment(request: HubRequest, found: RepoDiscussion) -> Response:
        text = request.form_fields.get("comment")
        try:
            added = await comments.add(repos, found.repo, found.discussion, caller_of(request), text)
        except (Unprocessable, Conflict, Forbidden) as error:
            return await show_again(request, found, "comment", error)
        return to_entry(found, added)

    async def status(request: HubRequest, found: RepoDiscussion) -> Response:
        new_status: Literal["open", "closed"] = "open" if request.form_fields.get("status") == "open" else "closed"
        caller = caller_of(request)
        try:
            added = await changes.set_status(repos, found.repo, found.discussion, caller, new_status)
        except (Conflict, Forbidden) as error:
            return await show_again(request, found, "status", error)
        return to_entry(found, added)

    async def title(request: HubRequest, found: RepoDiscussion) -> Response:
        text = request.form_fields.get("title")
        try:
            added = await changes.set_title(repos, found.repo, found.discussion, caller_of(request), text)
        except (Unprocessable, Conflict, Forbidden) as error:
            return await show_again(request, found, "title", error)
        return to_entry(found, added)

    async def merge(request: HubRequest, found: RepoDiscussion) -> Response:
        try:
            head = request.form_fields.get("head") or None
            merged = await merging.merge(repos, found.repo, found.discussion, caller_of(request), head=head)
        except Conflict as error:
            return await show_again(request, found, "merge", error)
        branch = (merged.base or "").removeprefix("refs/heads/")
        return base.pages.redirect(page_path(found.repo, merged.num), f"Merged into {branch}.")

    async def pin(request: HubRequest, found: RepoDiscussion) -> Response:
        pinned = request.form_fields.get("pinned") == "on"
        await changes.set_pinned(repos, found.repo, found.discussion, pinned)
        return base.pages.redirect(page_path(found.repo, found.discussion.num), "Pinned." if pinned else "Unpinned.")

    async def confirm_deletion(request: HubRequest, found: RepoDiscussion) -> Response:
        return base.show(request, found.repo, "discussion_delete.html", "discussions", discussion=found.discussion)

    async def delete(_: HubRequest, found: RepoDiscussion) -> Response:
        await removal.remove(repos, found.repo, found.discussion)
        return base.pages.redirect(f"{found.repo.path}/discussions", f"Deleted #{found.discussion.num}.")

    def route(method: str, tail: str, action: Action, handler: Handler[RepoDiscussion], summary: str) -> list[Route]:
        endpoint = discussion_endpoint(repos, action, handler)
        return base.routes(method, f"/discussions/{{num}}/{tail}", endpoint, summary, body_cap=TEXT_CAP)

    close, moderate = Action.DISCUSSION_CLOSE, Action.DISCUSSION_MODERATE
    return [
        *route("POST", "comment", Action.DISCUSSION_COMMENT, comment, "Comment on a repo's discussion"),
        *route("POST", "status", close, status, "Close or reopen a repo's discussion"),
        *route("POST", "title", close, title, "Change the title of a repo's discussion"),
        *route("POST", "merge", Action.REPO_WRITE, merge, "Merge a repo's pull request"),
        *route("POST", "pin", moderate, pin, "Pin or unpin a repo's discussion"),
        *route("GET", "delete", moderate, confirm_deletion, "Confirm the deletion of a repo's discussion"),
        *route("POST", "delete", moderate, delete, "Delete a repo's discussion"),
    ]
