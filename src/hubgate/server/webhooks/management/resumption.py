"""Enabling a suspended webhook and queueing its missed deliveries."""

from dataclasses import dataclass, replace

from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.management import audit, store
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, lock_webhook, require_grant
from hubgate.server.webhooks.model import ENABLED, SUSPENDED, Webhook


@dataclass(frozen=True)
class Resumed:
    kept: StoredWebhook
    # The number of deliveries queued again.
    queued: int


async def resume(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor) -> Resumed:
    """Enable a suspended webhook and queue the deliveries that failed or were skipped since the suspension. Calling it
    again changes nothing.
    """
    now = webhooks.clock()

    async def unit(tx: Tx) -> Resumed:
        await audit.begin(tx, owner.org_id, actor)
        before = await lock_webhook(tx, owner, webhook_id)
        watches = await store.watches_of(tx, webhook_id)
        if before.state != SUSPENDED or before.suspended_at is None:
            return Resumed(StoredWebhook(before, watches), 0)
        await require_grant(tx, before)
        await store.enable(tx, webhook_id)
        queued = await queue.requeue_missed(tx, webhook_id, before.suspended_at, now)
        await audit.record_change(tx, before, Kind.WEBHOOK_ENABLE, "enabled", actor, now, {"queued": queued})
        return Resumed(StoredWebhook(replace(before, state=ENABLED, suspended_at=None), watches), queued)

    return await webhooks.db.write_long(unit)


async def missed(webhooks: Webhooks, webhook: Webhook) -> int:
    """The number of deliveries that `resume` would queue."""
    since = webhook.suspended_at
    if since is None:
        return 0
    return await webhooks.db.read_long(lambda tx: queue.missed(tx, webhook.id, since))
