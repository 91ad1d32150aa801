"""What changes all Spaces of a user or an organization at once."""

from hubgate.server.spaces import store
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal

OWNER_DISABLED = "The account of the owner was disabled. When it is enabled again, restart the Space."


async def pause(tx: Tx, owner_id: str, now: int) -> None:
    """Pause the Spaces of a user whose account is disabled. Enabling it does not restart them."""
    if await store.pause_of_owner(tx, owner_id, OWNER_DISABLED, now):
        tx.signal(Signal.SPACES)


async def renew(tx: Tx, owner_id: str, now: int) -> None:
    """Start the apps of a renamed owner again: they know their names."""
    if await store.renew_of_owner(tx, owner_id, now):
        tx.signal(Signal.SPACES)
