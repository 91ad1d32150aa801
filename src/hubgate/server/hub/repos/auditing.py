"""What the audit log of an organization says of its repos, in the unit of the change."""

from typing import Any

from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.hub.repos.model import Owner, Repo
from hubgate.server.storage.database import Tx


async def note(tx: Tx, owner: Owner, kind: Kind, repo: Repo, does: str, actor: Actor, now: int, **more: Any) -> None:
    """`does` is what the actor did to the repo, which is named as it was then. Users have no such log."""
    if owner.kind == "org":
        data = {"repo": repo.full_name, "repoId": repo.id, "type": repo.type, **more}
        await record(tx, owner.id, kind, does, actor, now, data)
