"""`/discussions/{num}/comment` of a repo: add, edit and hide comments, and react to them."""

from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import comments
from hubgate.server.hub.discussions.entries.model import REACTIONS
from hubgate.server.web.api.repos.discussion_wire import describe_entry
from hubgate.server.web.discussion_targets import (
    DiscussionComment,
    RepoDiscussion,
    comment_endpoint,
    discussion_endpoint,
)
from hubgate.server.web.repo_routes import api_routes

# Enough for the longest text: an escaped emoji has 12 bytes, in JSON and in a form.
TEXT_CAP = 1024 * KIB


class NewComment(msgspec.Struct):
    comment: str


class EditedComment(msgspec.Struct):
    content: str


class ReactionRequest(msgspec.Struct):
    reaction: str


def routes(repos: Repos) -> list[Route]:
    async def add(request: HubRequest, found: RepoDiscussion) -> JsonResponse:
        body = await request.read_json(NewComment)
        added = await comments.add(repos, found.repo, found.discussion, caller_of(request), body.comment)
        return JsonResponse({"newMessage": await describe_entry(found.repo, added)}, 201)

    async def edit(request: HubRequest, found: DiscussionComment) -> JsonResponse:
        body, caller = await request.read_json(EditedComment), caller_of(request)
        edited = await comments.edit(repos, found.repo, found.discussion, found.comment, caller, body.content)
        return JsonResponse({"updatedComment": await describe_entry(found.repo, edited)})

    async def hide(request: HubRequest, found: DiscussionComment) -> JsonResponse:
        hidden = await comments.hide(repos, found.repo, found.discussion, found.comment, caller_of(request))
        return JsonResponse({"updatedComment": await describe_entry(found.repo, hidden)})

    async def react(request: HubRequest, found: DiscussionComment) -> JsonResponse:
        body, caller = await request.read_json(ReactionRequest), caller_of(request)
        changed = await comments.react(repos, found.repo, found.discussion, found.comment, caller, body.reaction)
        return JsonResponse({"updatedComment": await describe_entry(found.repo, changed)})

    invalid = {422: ("The request is invalid.", None)}
    changed = {200: ("The comment as `updatedComment`.", dict[str, Any]), 409: ("The comment is hidden.", None)}
    one = "/discussions/{num}/comment/{cid}"
    return [
        *api_routes(
            "POST",
            "/discussions/{num}/comment",
            discussion_endpoint(repos, Action.DISCUSSION_COMMENT, add),
            "Comment on a discussion of a repo",
            {201: ("The comment as `newMessage`.", dict[str, Any]), 409: ("The discussion is full.", None), **invalid},
            body=NewComment,
            body_cap=TEXT_CAP,
        ),
        *api_routes(
            "POST",
            f"{one}/edit",
            comment_endpoint(repos, Action.DISCUSSION_EDIT, edit),
            "Edit your comment on a discussion of a repo",
            {**changed, **invalid},
            body=EditedComment,
            body_cap=TEXT_CAP,
        ),
        *api_routes(
            "POST",
            f"{one}/hide",
            comment_endpoint(repos, Action.DISCUSSION_CLOSE, hide),
            "Permanently hide a comment on a discussion of a repo",
            changed,
        ),
        *api_routes(
            "POST",
            f"{one}/reaction",
            comment_endpoint(repos, Action.DISCUSSION_COMMENT, react),
            f"Add or remove your reaction to a comment on a discussion of a repo: {' '.join(REACTIONS)}",
            {**changed, **invalid},
            body=ReactionRequest,
            body_cap=4 * KIB,
        ),
    ]
