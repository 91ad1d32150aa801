"""Audit entries of an organization about its repos, written in the transaction of the change."""

from typing import Any

from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.hub.repos.model import Owner, Repo
from hubgate.server.storage.database import Tx


async def record_change(
    tx: Tx, owner: Owner, kind: Kind, repo: Repo, does: str, actor: Actor, now: int, **more: Any
) -> None:
    """Add an entry to the owner's audit log, if it is an organization; users have no audit log. `does` describes what
    the actor did; the entry has the repo's name at that time.
    """
    if owner.kind == "org":
        data = {"repo": repo.full_name, "repoId": repo.id, "type": repo.type, **more}
        await record(tx, owner.id, kind, does, actor, now, data)
