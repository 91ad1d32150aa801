"""Destinations of commits over HTTP (a branch, an open or a new pull request), and the permissions they require."""

from msgspec import Struct

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import require
from hubgate.server.edge.routes import Check, Target, enforce_further_checks
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.commits.commit import writable_ref
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos import lookup, store
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import DISCUSSIONS_DISABLED, REPO_GONE, Repo, is_pull_request, pull_request_of
from hubgate.server.hub.repos.revision_paths import PathAtRevision, candidate_refs
from hubgate.server.hub.repos.store import Ref

ACTIONS = (Action.REPO_SEE, Action.REPO_WRITE, Action.DISCUSSION_OPEN, Action.DISCUSSION_PUSH)


class Destination(Struct, frozen=True):
    """The destination of a commit. `pull_request` is the open pull request that `rev` names, if any."""

    repo: Repo
    rev: str
    as_pull_request: bool
    pull_request: Discussion | None = None


async def find_target(repos: Repos, repo: Repo, rev: str, *, as_pull_request: bool) -> Target[Destination]:
    """Find the destination and the required permissions. `ref_at` checks whether the revision exists."""
    repo_resource, checks = repo.as_resource(), tuple[Check, ...]()
    found, hint = None, ""
    if as_pull_request:
        checks = (Check(Action.DISCUSSION_OPEN, repo_resource),)
    elif is_pull_request(rev):
        found = await _open_pull_request(repos, repo, rev)
        if found is not None:
            # As for a push: allowed for the author and for writers.
            post = resource.Post(repo_resource, found.author_id)
            own = () if repo.discussions_disabled else (Check(Action.DISCUSSION_PUSH, post),)
            checks, hint = (
                (*own, Check(Action.REPO_WRITE, repo_resource)),
                DISCUSSIONS_DISABLED if repo.discussions_disabled else "",
            )
    else:
        checks = (Check(Action.REPO_WRITE, repo_resource),)
    further_checks = (checks,) if checks else ()
    return Target(
        Destination(repo, rev, as_pull_request, found), repo_resource, further_checks=further_checks, hint=hint
    )


async def ref_at(repos: Repos, destination: Destination, found: Ref | None = None) -> str:
    """Return the ref to update or, for a new pull request, its target branch. `found` is the ref that the revision
    names, if the caller has just read it.
    """
    if is_pull_request(destination.rev) and destination.pull_request is None and not destination.as_pull_request:
        raise lookup.revision_not_found(destination.rev)
    if destination.as_pull_request and destination.repo.discussions_disabled:
        raise Forbidden(DISCUSSIONS_DISABLED)
    at = PathAtRevision(destination.rev, "", found)
    revision = await lookup.revision_of(repos, destination.repo, at)
    return _branch(revision, destination) if destination.as_pull_request else writable_ref(revision)


async def check_again(repos: Repos, identity: Identity, destination: Destination) -> str:
    """Check permissions again after the upload and return `ref_at`: hours later, the role or the repo may be gone."""
    found = await store.by_id_with_ref(repos.db, destination.repo.id, candidate_refs(destination.rev))
    if found is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    repo, ref = found
    current = await find_target(repos, repo, destination.rev, as_pull_request=destination.as_pull_request)
    require(identity, ACTIONS[0], current.resource)
    enforce_further_checks(identity, current)
    return await ref_at(repos, current.subject, ref)


def _branch(revision: Revision, destination: Destination) -> str:
    if revision.ref is None or not revision.ref.startswith("refs/heads/"):
        raise lookup.revision_not_found(destination.rev)
    return revision.ref


async def _open_pull_request(repos: Repos, repo: Repo, rev: str) -> Discussion | None:
    number = pull_request_of(rev)
    found = await discussions.find(repos.db, repo.id, number) if number else None
    return found if found is not None and found.accepts_commits else None
