"""Deleting webhooks, one of them or an account's.

One that has sent a million deliveries takes long to delete, and with SQLite nobody else writes meanwhile. So it is
taken from its owner and from the line at once, for good and unseen by everyone; what is left goes in small batches.
"""

from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.managing import auditing, store
from hubgate.server.webhooks.managing.managing import held

# Of its deliveries, those that go with it; of most webhooks that is all.
AT_ONCE = 500


async def delete(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor) -> None:
    now = webhooks.clock()

    async def unit(tx: Tx) -> None:
        await auditing.begin(tx, owner.org_id, actor)
        gone = await held(tx, owner, webhook_id)
        await _remove(tx, webhook_id, now)
        await auditing.tell(tx, gone, Kind.WEBHOOK_DELETE, "deleted", actor, now)

    await webhooks.db.write_long(unit)


async def delete_of_owner(tx: Tx, owner_id: str, now: int) -> int:
    """In a unit that holds the account, so that no webhook is created for it concurrently; how many there were."""
    ids = await store.ids_of_owner(tx, owner_id)
    for webhook_id in ids:
        await _remove(tx, webhook_id, now)
    return len(ids)


async def _remove(tx: Tx, webhook_id: str, now: int) -> None:
    await store.abandon(tx, webhook_id, now)
    await store.drop_abandoned(tx, webhook_id, AT_ONCE)
