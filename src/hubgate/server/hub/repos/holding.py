"""An owner that gets a repo is neither deleted nor renamed meanwhile."""

from hubgate.server.errors import NotFound
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Owner
from hubgate.server.storage.database import Tx


async def hold_owner(tx: Tx, owner: Owner) -> None:
    """Before anything of a repo is waited for: so does the deletion of an account, and neither blocks the other."""
    if not await store.hold_owner(tx, owner):
        raise NotFound(f"{owner.name} is gone.")
