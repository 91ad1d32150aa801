"""Steps that transactions on repos share: row locks, and entries in an organization's audit log.

A locked owner or repo is not deleted before the transaction ends. The edge checked the caller's permission once the
whole request was received, just before the transaction: a slow request cannot use permissions that were revoked
while it was being sent (attacks O44 and O69).
"""

from typing import Any

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import NotFound
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, RepoOwner
from hubgate.server.storage.database import Tx


async def lock_owner(tx: Tx, owner: RepoOwner) -> RepoOwner:
    """Lock an owner and return it with its current name. Lock the owner before any repo: deletion and rename of
    accounts do the same, which avoids deadlocks.
    """
    locked = await store.lock_owner(tx, owner)
    if locked is None:
        raise NotFound(f"{owner.name} was deleted.")
    return locked


async def lock_repo(tx: Tx, repo_id: str) -> int:
    """Lock a repo until the end of the transaction and return its generation, which counts changes of its refs."""
    generation = await store.lock(tx, repo_id)
    if generation is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    return generation


async def record_audit(
    tx: Tx, owner: RepoOwner, kind: EntryType, repo: Repo, action: str, actor: Actor, now: int, **details: Any
) -> None:
    """Add an entry to the owner's audit log, if the owner is an organization; users have no audit log. `action`
    describes what the actor did; the entry has the repo's name at that time.
    """
    if owner.kind == "org":
        data = {"repo": repo.full_name, "repoId": repo.id, "type": repo.type, **details}
        await record(tx, owner.id, kind, action, actor, now, data)
