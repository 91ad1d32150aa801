"""An owner that gets a repo is neither deleted nor renamed meanwhile."""

from hubgate.server.errors import NotFound
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Owner
from hubgate.server.storage.database import Tx


async def hold_owner(tx: Tx, owner: Owner) -> Owner:
    """With the name it has now. Before anything of a repo is waited for: so do the deletion and the rename of an
    account, and neither blocks the other.
    """
    held = await store.hold_owner(tx, owner)
    if held is None:
        raise NotFound(f"{owner.name} is gone.")
    return held
