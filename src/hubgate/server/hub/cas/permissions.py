"""Which xorbs a user may refer to: those the user sent to the repo, and those whose content the user may read.

The answers are the same for a xorb that is not stored and for one that the user may not read, so hashes that are
guessed or copied from somewhere reveal nothing and grant nothing.
"""

from collections.abc import Collection

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.access.visibility import visible_repos
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import Sender
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos.model import Repo

# Repos that are checked for a xorb that many have. A user who may read only a later one sends the xorb again.
MAX_REPOS_CHECKED = 20


async def usable_xorbs(repos: Repos, sender: Sender, xorbs: Collection[str]) -> set[str]:
    """Those xorbs that a shard of this sender may name."""
    by_writers = sender.reads_repo
    found = await repos.db.read_long(
        lambda tx: store.sent_among(tx, sender.repo.id, sender.user_id, xorbs, by_writers=by_writers)
    )
    for xorb in set(xorbs) - found:
        if await readable_repo_with(repos, sender.identity, xorb, sender.repo.id) is not None:
            found.add(xorb)
    return found


async def readable_repo_with(repos: Repos, identity: Identity, xorb: str, first: str) -> Repo | None:
    """A repo that has a file with chunks of this xorb and whose files the caller may read; `first` is preferred."""
    visible = visible_repos(identity)
    candidates = await repos.db.read_long(lambda tx: store.repos_with(tx, xorb, visible, first, MAX_REPOS_CHECKED))
    for repo in candidates:
        if await may_read(repos, identity, repo):
            return repo
    return None


async def may_read(repos: Repos, identity: Identity, repo: Repo) -> bool:
    """Whether the caller may read the files of a repo, which may be gated."""
    repo = await access_requests.with_access(repos, repo, identity.user_id)
    return decide(identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed
