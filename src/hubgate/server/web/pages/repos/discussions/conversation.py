"""`/discussions/{num}`: the conversation of a discussion or pull request, and its `/files`: the proposed changes."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.access.resource import Post
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound, Unavailable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.hub.discussions import merging, proposed_changes
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import REACTIONS, Conversation, Entry, Reaction, UserLabel
from hubgate.server.hub.discussions.model import Discussion, page_path
from hubgate.server.hub.git.program import GitFailed
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.storage.database import Tx
from hubgate.server.web.conversations import comments_as_html
from hubgate.server.web.discussion_targets import RepoDiscussion, discussion_endpoint
from hubgate.server.web.pages.listing import ROWS, list_page
from hubgate.server.web.pages.repos.page_context import RepoLocation, RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS


class ShownReaction(Struct, frozen=True):
    reaction: str
    count: int
    users: str
    # Whether the visitor has this reaction.
    own: bool


class ShownEntry(Struct, frozen=True):
    entry: Entry
    # None if the user was deleted.
    author: UserLabel | None
    html: Markup
    reactions: list[ShownReaction]
    hidden_by: UserLabel | None
    may_edit: bool
    may_hide: bool


class Permissions(Struct, frozen=True):
    """The visitor's permissions in a discussion."""

    comment: bool
    close: bool
    moderate: bool
    merge: bool


def routes(base: RepoPageContext) -> list[Route]:
    async def show(request: HubRequest, found: RepoDiscussion) -> Response:
        return await render(base, request, found)

    async def files(request: HubRequest, found: RepoDiscussion) -> Response:
        repo, discussion = found.repo, found.discussion
        if discussion.base is None:
            return RedirectResponse(page_path(repo, discussion.num), 303)
        may_read = base.may(request, repo, Action.REPO_READ_CONTENT)
        changes = await proposed_changes.changes_of(base.repos, repo, discussion, content=may_read)
        return base.show(
            request,
            repo,
            "discussion_files.html",
            "discussions",
            discussion=discussion,
            changes=changes,
            may_read=may_read,
            head=await _head(base, repo, discussion),
        )

    see = Action.REPO_SEE
    return [
        *base.routes(
            "GET",
            "/discussions/{num}",
            discussion_endpoint(base.repos, see, show),
            "The conversation of a repo's discussion or pull request",
        ),
        *base.routes(
            "GET",
            "/discussions/{num}/files",
            discussion_endpoint(base.repos, see, files),
            "The changes that a repo's pull request proposes",
        ),
    ]


async def render(
    base: RepoPageContext,
    request: HubRequest,
    found: RepoDiscussion,
    errors: Mapping[str, str] = NO_ERRORS,
    status: int | None = None,
    **given: str,
) -> Response:
    """Render a conversation. With `errors`, `given` are the values of the rejected form."""
    repo, discussion, repos = found.repo, found.discussion, base.repos

    async def read(tx: Tx) -> tuple[Conversation, str | None]:
        # Read together: the form merges only the commits that the page shows.
        head = await repo_store.ref(tx, repo.id, discussion.ref) if discussion.accepts_commits else None
        return await entry_store.conversation(tx, repo.id, discussion.num), head

    conversation, head = await repos.db.read_long(read)
    page = list_page(request, conversation.entries)
    # Conflicts reveal gated content: an author without access could guess lines and see whether they conflict.
    may_read = base.may(request, repo, Action.REPO_READ_CONTENT)
    return base.show(
        request,
        repo,
        "discussion.html",
        "discussions",
        errors,
        status,
        discussion=discussion,
        author=conversation.users.get(discussion.author_id),
        page=page,
        shown=await _shown(request, repo, conversation, page.items),
        may=_permissions(request, repo, discussion),
        may_read=may_read,
        head_sha=head,
        conflicts=await _conflicts(base, repo, discussion) if may_read else None,
        reactions=REACTIONS,
        given={"comment": "", "title": discussion.title, **given},
    )


def _permissions(request: HubRequest, repo: Repo, discussion: Discussion) -> Permissions:
    identity, resource = caller_of(request).identity, repo.as_resource()
    post = Post(resource, discussion.author_id)
    enabled = not repo.discussions_disabled
    return Permissions(
        comment=enabled and decide(identity, Action.DISCUSSION_COMMENT, resource).allowed,
        close=decide(identity, Action.DISCUSSION_CLOSE, post).allowed,
        moderate=decide(identity, Action.DISCUSSION_MODERATE, post).allowed,
        merge=decide(identity, Action.REPO_WRITE, resource).allowed,
    )


async def _shown(
    request: HubRequest, repo: Repo, conversation: Conversation, entries: Sequence[Entry]
) -> list[ShownEntry]:
    html, users = await comments_as_html(repo, entries), conversation.users
    identity, resource = caller_of(request).identity, repo.as_resource()
    person = caller_of(request).person
    own_name = person.user.name if person else None

    def may(action: Action, entry: Entry) -> bool:
        visible = entry.id in html and not entry.is_hidden
        return visible and decide(identity, action, Post(resource, entry.author_id)).allowed

    return [
        ShownEntry(
            entry,
            users.get(entry.author_id),
            html.get(entry.id, Markup()),
            [_reaction(found, own_name) for found in conversation.reactions.get(entry.id, ())],
            users.get(entry.hidden_by or ""),
            may_edit=may(Action.DISCUSSION_EDIT, entry) and not repo.discussions_disabled,
            may_hide=may(Action.DISCUSSION_CLOSE, entry),
        )
        for entry in entries
    ]


def _reaction(found: Reaction, own_name: str | None) -> ShownReaction:
    more = len(found.users) - 10
    names = ", ".join(found.users[:10]) + (f" and {more} more" if more > 0 else "")
    return ShownReaction(found.reaction, len(found.users), names, own_name in found.users)


async def _conflicts(base: RepoPageContext, repo: Repo, discussion: Discussion) -> list[str] | None:
    """The conflicting files of an open pull request; an empty name stands for files that cannot be named. None if
    finding them takes too long or git fails.
    """
    try:
        trial = await merging.conflicts_of(base.repos, repo, discussion)
    except (Unavailable, GitFailed):
        return None
    if trial is None or not trial.has_conflicts:
        return []
    return list(trial.conflicts) or [""]


async def _head(base: RepoPageContext, repo: Repo, discussion: Discussion) -> RepoLocation | None:
    try:
        return RepoLocation(repo, discussion.ref, await base.revision(repo, discussion.ref))
    except NotFound:
        return None


def entry_path(repo: Repo, discussion: Discussion, entry: Entry) -> str:
    """The path of an entry: its page of the conversation, with the entry's anchor."""
    page = (entry.position - 1) // ROWS + 1
    query = f"?page={page}" if page > 1 else ""
    return f"{page_path(repo, discussion.num)}{query}#{entry.id}"
