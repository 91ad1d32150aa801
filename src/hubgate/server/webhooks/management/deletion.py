"""Deleting a webhook, or all webhooks of an account.

Deleting a million deliveries takes long, and SQLite has a single writer. So the webhook is detached from its owner and
from the queue at once, and the remaining rows are deleted in small batches (`retention/`).
"""

from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import audit, store
from hubgate.server.webhooks.management.lifecycle import lock_webhook

# Deliveries deleted together with the webhook; most webhooks have fewer.
AT_ONCE = 500


async def delete(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor) -> None:
    now = webhooks.clock()

    async def unit(tx: Tx) -> None:
        await audit.begin(tx, owner.org_id, actor)
        deleted = await lock_webhook(tx, owner, webhook_id)
        await _remove(tx, webhook_id, now)
        await audit.record_change(tx, deleted, Kind.WEBHOOK_DELETE, "deleted", actor, now)

    await webhooks.db.write_long(unit)


async def delete_with_owner(tx: Tx, owner_id: str, now: int) -> None:
    """Delete the webhooks of an account that is being deleted together with its audit log. The caller has locked the
    account, so no webhook is created concurrently.
    """
    for webhook_id in await store.ids_of_owner(tx, owner_id):
        await _remove(tx, webhook_id, now)


async def delete_of_owner(tx: Tx, owner_id: str, actor: Actor, reason: str, now: int) -> int:
    """Delete the webhooks of an account that stays, with audit entries; the number of webhooks."""
    ids = await store.ids_of_owner(tx, owner_id)
    for webhook_id in ids:
        deleted = await store.lock(tx, webhook_id)
        await _remove(tx, webhook_id, now)
        if deleted is not None:
            await audit.record_change(tx, deleted, Kind.WEBHOOK_DELETE, "deleted", actor, now, {"reason": reason})
    return len(ids)


async def _remove(tx: Tx, webhook_id: str, now: int) -> None:
    await store.abandon(tx, webhook_id, now)
    await store.drop_abandoned(tx, webhook_id, AT_ONCE)
