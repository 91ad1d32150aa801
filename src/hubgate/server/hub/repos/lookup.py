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
from hubgate.server.hub.repos.model import MAIN, Repo, is_pull_request, pull_request_of
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
    if repo is not None:
        charge_repo(repo.id)
        return repo
    owner = await store.owner_named(repos.db, namespace)
    return resource.Repo.missing(owner.namespace if owner else resource.NOBODY)


async def revision(repos: Repos, repo: Repo, text: str) -> Revision:
    """Resolve a branch, a tag, a pull request's ref, `HEAD`, or at least seven digits of a commit id."""
    if text == "HEAD":
        text = MAIN
    found = await store.first_ref(repos.db, repo.id, _candidate_refs(text))
    if found is not None:
        return await _of_ref(repos, repo, text, found)
    if _SHA.match(text):
        commit = await objects.commit_of(repos.folders.of(repo.id), text.lower())
        reachability = await marked_commits.reachability_of(repos, repo, commit) if commit else Reachability.UNREACHABLE
        if commit is not None and reachability is not Reachability.UNREACHABLE:
            return Revision(commit, None, reachability is Reachability.PULL_REQUEST)
    raise revision_not_found(text)


async def _of_ref(repos: Repos, repo: Repo, text: str, found: tuple[str, str]) -> Revision:
    ref, sha = found
    commit = sha if not ref.startswith("refs/tags/") else await objects.commit_of(repos.folders.of(repo.id), sha)
    if commit is None:
        raise revision_not_found(text)
    return Revision(commit, ref)


def revision_not_found(text: str) -> NotFound:
    return NotFound(f"Invalid rev id: {text[:200]}", code="RevisionNotFound")


class PathAtRevision(Struct, frozen=True):
    """A revision as written in a URL, a path in it, and the name and id of its ref if already resolved."""

    rev: str
    path: str
    resolved_ref: tuple[str, str] | None


async def parse_revision_path(repos: Repos, repo: Repo, rest: str, *, first: str = "") -> PathAtRevision:
    """Split the rest of a URL into revision and path. Both may contain slashes that were not percent-encoded.

    The revision is refs/<kind>/<name>, else the longest existing ref, else the first segment. But a first segment with
    an encoded slash, passed as `first`, is the whole revision: the client marked where it ends.
    """
    if "/" in first:
        return PathAtRevision(first, rest[len(first) + 1 :], None)
    parts = rest.split("/")
    if len(parts) >= 3 and parts[0] == "refs" and parts[1] in ("pr", "convert", "heads", "tags"):
        return PathAtRevision("/".join(parts[:3]), "/".join(parts[3:]), None)
    lengths = range(min(len(parts), _MAX_SEGMENTS), 0 if parts[0] != "HEAD" else 1, -1)
    by_name = {name: length for length in lengths for name in _candidate_refs("/".join(parts[:length]))}
    found = await store.first_ref(repos.db, repo.id, list(by_name))
    length = by_name[found[0]] if found else 1
    return PathAtRevision("/".join(parts[:length]), "/".join(parts[length:]), found)


async def revision_of(repos: Repos, repo: Repo, at: PathAtRevision) -> Revision:
    if at.resolved_ref:
        return await _of_ref(repos, repo, at.rev, at.resolved_ref)
    return await revision(repos, repo, at.rev)


async def is_branch_or_tag_head(repos: Repos, repo: Repo, at: Revision) -> bool:
    """Whether the revision is the head of a branch or a tag. The head of a pull request does not count: anyone may open
    one, and its commits may contain any file of the repo under any name.
    """
    if at.ref is not None:
        return at.ref.startswith(("refs/heads/", "refs/tags/"))
    return await store.is_head(repos.db, repo.id, at.sha)


async def split_revision(repos: Repos, repo: Repo, rest: str, *, first: str = "") -> tuple[str, str]:
    """Split the rest of a URL into revision and path (see `parse_revision_path`)."""
    at = await parse_revision_path(repos, repo, rest, first=first)
    return at.rev, at.path


# A branch name with more segments must be percent-encoded.
_MAX_SEGMENTS = 5


def _candidate_refs(text: str) -> list[str]:
    if text.startswith("refs/"):
        return [text] if not is_pull_request(text) or pull_request_of(text) else []
    return [f"refs/heads/{text}", f"refs/tags/{text}"]
