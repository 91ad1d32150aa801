"""Deleting a webhook, or all webhooks of an account, and deliveries and events past the retention period.

Deleting a million deliveries takes a long time, and SQLite has a single writer. So the webhook is detached from its
owner and from the queue at once, and a background job deletes the remaining rows in small batches.
"""

from msgspec import Struct

from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.clock import DAY
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import audit
from hubgate.server.webhooks.management.lifecycle import lock_webhook
from hubgate.server.webhooks.management.store import lock
from hubgate.server.webhooks.replaying.store import drop_ended
from hubgate.server.webhooks.retention import store

EVERY_SECONDS = 60.0
# Also the number of deliveries deleted together with the webhook; most webhooks have fewer.
BATCH = 500


async def delete(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor) -> None:
    now = webhooks.clock()

    async def unit(tx: Tx) -> None:
        await audit.lock_for_change(tx, owner.org_id, actor)
        deleted = await lock_webhook(tx, owner, webhook_id)
        await _remove(tx, webhook_id)
        await audit.record_change(tx, deleted, EntryType.WEBHOOK_DELETE, "deleted", actor, now)

    await webhooks.db.write_long(unit)


async def delete_with_owner(tx: Tx, owner_id: str) -> None:
    """Delete the webhooks of an account that is being deleted, without an audit entry for each. The caller has locked
    the account, so no webhook is created concurrently.
    """
    for webhook_id in await store.ids_of_owner(tx, owner_id):
        await _remove(tx, webhook_id)


async def delete_with_audit_entries(tx: Tx, owner_id: str, actor: Actor, reason: str, now: int) -> int:
    """Delete the webhooks of an account that is retained, record audit entries, and return the number of webhooks."""
    ids = await store.ids_of_owner(tx, owner_id)
    for webhook_id in ids:
        deleted = await lock(tx, webhook_id)
        await _remove(tx, webhook_id)
        if deleted is not None:
            await audit.record_change(tx, deleted, EntryType.WEBHOOK_DELETE, "deleted", actor, now, {"reason": reason})
    return len(ids)


async def _remove(tx: Tx, webhook_id: str) -> None:
    await store.detach(tx, webhook_id)
    await store.drop_detached(tx, webhook_id, BATCH)


class Retention(Struct, frozen=True):
    """The background job that deletes old deliveries and events, and the remaining rows of deleted webhooks."""

    webhooks: Webhooks
    days: int

    async def step(self) -> bool:
        """Delete a batch of each, and return whether to continue at once."""
        before = self.webhooks.clock() - self.days * DAY
        write = self.webhooks.db.write_long
        deleted = [
            await write(lambda tx: store.drop_deliveries(tx, before, BATCH)),
            await write(lambda tx: store.drop_events(tx, before, BATCH)),
        ]
        await write(lambda tx: drop_ended(tx, before))
        return await write(_delete_detached) or BATCH in deleted


async def _delete_detached(tx: Tx) -> bool:
    webhook_id = await store.any_detached(tx)
    if webhook_id is not None:
        await store.drop_detached(tx, webhook_id, BATCH)
    return webhook_id is not None
