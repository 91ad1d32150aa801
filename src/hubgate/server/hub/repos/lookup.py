"""Resolves names to repos and revisions to commits."""

import re

from msgspec import Struct

from hubgate.server.access import resource
from hubgate.server.errors import NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects
from hubgate.server.hub.guests import marked_commits
from hubgate.server.hub.guests.marked_commits import Reachability
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.revision_paths import PathAtRevision, RevisionPath, candidate_refs
from hubgate.server.hub.repos.store import Ref
from hubgate.server.jobs.caller import charge_repo

_SHA = re.compile(r"[0-9a-fA-F]{7,40}\Z")


class Revision(Struct, frozen=True):
    """A commit, and the ref it was requested by, if any. `in_pull_request` is set if the commit was requested by id and
    is reachable only from a pull request, which anyone may open (attack O72).
    """

    sha: str
    ref: str | None
    in_pull_request: bool = False


async def find_repo(repos: Repos, repo_type: str, namespace: str, name: str) -> Repo | resource.Repo:
    """The repo with this current or former name; a placeholder that policy rejects if none exists
    (`policy.refuse_missing`).
    """
    repo = await store.named(repos.db, repo_type, namespace, name)
    if repo is None:
        return await _missing(repos, namespace)
    charge_repo(repo.id)
    return repo


async def find_repo_and_path(
    repos: Repos, repo_type: str, namespace: str, name: str, rest: RevisionPath
) -> tuple[Repo | resource.Repo, PathAtRevision]:
    """Like `find_repo`, with the revision and path at the end of the address, in one query."""
    if not rest.options:
        return await find_repo(repos, repo_type, namespace, name), rest.at(None)
    found = await store.named_with_ref(repos.db, repo_type, namespace, name, list(rest.options))
    if found is None:
        return await _missing(repos, namespace), rest.at(None)
    repo, ref = found
    charge_repo(repo.id)
    return repo, rest.at(ref)


async def _missing(repos: Repos, namespace: str) -> resource.Repo:
    owner = await store.owner_named(repos.db, namespace)
    return resource.Repo.missing(owner.namespace if owner else resource.NOBODY)


async def revision(repos: Repos, repo: Repo, text: str) -> Revision:
    """Resolve a branch, a tag, a pull request's ref, `HEAD`, or at least seven digits of a commit id."""
    found = await store.first_ref(repos.db, repo.id, candidate_refs(text))
    if found is not None:
        return await _of_ref(repos, repo, text, found)
    if _SHA.match(text):
        commit = await objects.commit_of(repos.folders.of(repo.id), text.lower())
        reachability = await marked_commits.reachability_of(repos, repo, commit) if commit else Reachability.UNREACHABLE
        if commit is not None and reachability is not Reachability.UNREACHABLE:
            return Revision(commit, None, reachability is Reachability.PULL_REQUEST)
    raise revision_not_found(text)


async def _of_ref(repos: Repos, repo: Repo, text: str, found: Ref) -> Revision:
    ref, sha = found
    commit = sha if not ref.startswith("refs/tags/") else await objects.commit_of(repos.folders.of(repo.id), sha)
    if commit is None:
        raise revision_not_found(text)
    return Revision(commit, ref)


def revision_not_found(text: str) -> NotFound:
    return NotFound(f"Invalid rev id: {text[:200]}", code="RevisionNotFound")


async def revision_of(repos: Repos, repo: Repo, at: PathAtRevision) -> Revision:
    if at.ref is not None:
        return await _of_ref(repos, repo, at.rev, at.ref)
    return await revision(repos, repo, at.rev)


async def is_branch_or_tag_head(repos: Repos, repo: Repo, at: Revision) -> bool:
    """Whether the revision is the head of a branch or a tag. The head of a pull request does not count: anyone may open
    one, and its commits may contain any file of the repo under any name.
    """
    if at.ref is not None:
        return at.ref.startswith(("refs/heads/", "refs/tags/"))
    return await store.is_head(repos.db, repo.id, at.sha)
