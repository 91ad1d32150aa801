"""Endpoints about one discussion of a repo, or one of its comments, for the API and the pages."""

import re

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.resource import Post
from hubgate.server.edge.routes import Check, Handler, Target
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import comments, recording, store
from hubgate.server.hub.discussions.entries.model import Entry
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint_with_target

_NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")


class RepoDiscussion(Struct, frozen=True):
    repo: Repo
    discussion: Discussion


class DiscussionComment(Struct, frozen=True):
    repo: Repo
    discussion: Discussion
    comment: Entry


def discussion_endpoint(repos: Repos, action: Action, handler: Handler[RepoDiscussion]) -> EndpointForType:
    """Create endpoints for a handler about the discussion `{num}`. An action on posts is checked on the discussion, and
    the caller must see the repo; an action on repos is checked on the repo.
    """

    async def find(request: HubRequest, repo: Repo) -> Target[RepoDiscussion]:
        discussion = await _find_discussion(repos, repo, request)
        target = RepoDiscussion(repo, discussion)
        return Target(target, repo.as_resource(), further_checks=_checks(action, repo, discussion.author_id))

    return repo_endpoint_with_target(repos, _actions(action), find, handler)


def comment_endpoint(repos: Repos, action: Action, handler: Handler[DiscussionComment]) -> EndpointForType:
    """Create endpoints for a handler about the comment `{cid}` of the discussion `{num}`. An action on posts is checked
    on the comment.
    """

    async def find(request: HubRequest, repo: Repo) -> Target[DiscussionComment]:
        discussion = await _find_discussion(repos, repo, request)
        comment = await comments.find_comment(repos, repo, discussion, request.param("cid"))
        target = DiscussionComment(repo, discussion, comment)
        return Target(target, repo.as_resource(), further_checks=_checks(action, repo, comment.author_id))

    return repo_endpoint_with_target(repos, _actions(action), find, handler)


def _actions(action: Action) -> tuple[Action, ...]:
    return (Action.REPO_SEE, action) if Post in action.rule.on else (action,)


def _checks(action: Action, repo: Repo, author_id: str) -> tuple[tuple[Check, ...], ...]:
    return ((Check(action, Post(repo.as_resource(), author_id)),),) if Post in action.rule.on else ()


async def _find_discussion(repos: Repos, repo: Repo, request: HubRequest) -> Discussion:
    number = _NUMBER.match(request.param("num"))
    found = await store.find(repos.db, repo.id, int(number[0])) if number else None
    if found is None:
        raise recording.not_found()
    return found
