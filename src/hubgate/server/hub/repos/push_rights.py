"""Permissions of a push, checked when it begins and again right before its refs move, which may be hours later."""

from collections import Counter
from collections.abc import Sequence

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.decision import Decision
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussion_store
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.git.refnames import RefNames, invalid_reason
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import MAIN, Repo, is_pull_request, pull_request_of

NO_PULL_REQUEST = "no such pull request"


def may_send_deltas(identity: Identity, repo: Repo) -> bool:
    """Whether a pack may contain deltas to objects of the repo. A delta can copy any part of a file, and the response
    to the push depends on the result, so users who may not read the files of a gated repo send no such deltas.
    """
    return decide(identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed


async def refusals(repos: Repos, identity: Identity, repo: Repo, changes: Sequence[RefChange]) -> dict[str, str]:
    """The reason for each ref change that is rejected for this caller."""
    write_decision = decide(identity, Action.REPO_WRITE, repo.as_resource())
    occurrences = Counter(change.ref for change in changes)
    names = await _remaining_names(repos, repo, changes)
    refused: dict[str, str] = {}
    for change in changes:
        reason = (
            ("named more than once" if occurrences[change.ref] > 1 else invalid_reason(change.ref))
            or await _permission_refusal(repos, identity, repo, change, write_decision)
            or _conflict(change, names, repos.limits.refs)
        )
        if reason is not None:
            refused[change.ref] = reason
    return refused


async def _permission_refusal(
    repos: Repos, identity: Identity, repo: Repo, change: RefChange, write_decision: Decision
) -> str | None:
    if is_pull_request(change.ref):
        return await _pull_request_refusal(repos, identity, repo, change, write_decision)
    if not write_decision.allowed:
        return write_decision.reason
    if not change.ref.startswith(("refs/heads/", "refs/tags/")):
        return "only branches, tags and pull requests can be pushed"
    if change.ref == MAIN and change.new_sha is None:
        return f"Cannot delete {MAIN}"
    return None


async def _pull_request_refusal(
    repos: Repos, identity: Identity, repo: Repo, change: RefChange, write_decision: Decision
) -> str | None:
    number = pull_request_of(change.ref)
    found = await discussion_store.find(repos.db, repo.id, number) if number else None
    if (
        found is None
        or not found.accepts_commits
        or not (write_decision.allowed or _may_push_to(identity, repo, found))
    ):
        return NO_PULL_REQUEST
    return "close the pull request instead" if change.new_sha is None else None


def _may_push_to(identity: Identity, repo: Repo, pull_request: Discussion) -> bool:
    if repo.discussions_disabled:
        return False
    post = resource.Post(repo.as_resource(), pull_request.author_id)
    return decide(identity, Action.DISCUSSION_PUSH, post).allowed


async def _remaining_names(repos: Repos, repo: Repo, changes: Sequence[RefChange]) -> RefNames:
    """The refs that remain after the push's deletions, for checking new refs against; empty if no ref is new."""
    if all(change.old_sha is not None for change in changes):
        return RefNames(())
    names = RefNames(name for name, _ in await repos.db.read_long(lambda tx: store.refs(tx, repo.id)))
    for change in changes:
        if change.new_sha is None:
            names.discard(change.ref)
    return names


def _conflict(change: RefChange, names: RefNames, max_refs: int) -> str | None:
    if change.old_sha is not None or change.new_sha is None:
        return None
    if names.branch_and_tag_count >= max_refs:
        return f"a repo may have at most {max_refs:,} refs"
    other = names.conflicting_ref(change.ref)
    if other is not None:
        return f"conflicts with {other}"
    names.add(change.ref)
    return None
