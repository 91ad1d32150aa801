"""Enabling and disabling webhooks, and queueing the missed deliveries of a suspended one."""

from msgspec.structs import replace

from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.errors import Conflict
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import audit, backlog_store, store
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, lock_webhook
from hubgate.server.webhooks.model import DISABLED, ENABLED, SUSPENDED, Webhook
from hubgate.server.webhooks.permissions import grants
from hubgate.server.webhooks.permissions.store import is_grant_valid
from hubgate.server.webhooks.shards.store import wake
from hubgate.server.webhooks.watches import store as watches


async def switch(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor, *, on: bool) -> StoredWebhook:
    """Enable or disable a webhook. Disabling skips queued deliveries; enabling does not queue them again."""
    now = webhooks.clock()

    async def unit(tx: Tx) -> StoredWebhook:
        await audit.lock_for_change(tx, owner.org_id, actor)
        before = await lock_webhook(tx, owner, webhook_id)
        if on:
            await _require_grant(tx, before)
            await store.enable(tx, webhook_id)
            await wake(tx, [webhook_id], now)
        elif before.state != DISABLED:
            await store.disable(tx, webhook_id)
            await backlog_store.skip_all(tx, webhook_id, DISABLED, now)
        state = ENABLED if on else DISABLED
        if before.state != state:
            kind, verb = (EntryType.WEBHOOK_ENABLE, "enabled") if on else (EntryType.WEBHOOK_DISABLE, "disabled")
            await audit.record_change(tx, before, kind, verb, actor, now)
        return StoredWebhook(replace(before, state=state), await watches.of_webhook(tx, webhook_id))

    return await webhooks.db.write_long(unit)


async def resume(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor) -> int:
    """Enable a suspended webhook and queue the deliveries that failed or were skipped since the suspension.
    Returns the number of these deliveries. Calling it again changes nothing.
    """
    now = webhooks.clock()

    async def unit(tx: Tx) -> int:
        await audit.lock_for_change(tx, owner.org_id, actor)
        before = await lock_webhook(tx, owner, webhook_id)
        if before.state != SUSPENDED or before.suspended_at is None:
            return 0
        await _require_grant(tx, before)
        await store.enable(tx, webhook_id)
        queued = await backlog_store.requeue_missed(tx, webhook_id, before.suspended_at, now)
        await audit.record_change(tx, before, EntryType.WEBHOOK_ENABLE, "enabled", actor, now, {"queued": queued})
        return queued

    return await webhooks.db.write_long(unit)


async def count_missed(webhooks: Webhooks, webhook: Webhook) -> int:
    """The number of deliveries that `resume` would backlog_store."""
    since = webhook.suspended_at
    if since is None:
        return 0
    return await webhooks.db.read_long(lambda tx: backlog_store.missed(tx, webhook.id, since))


async def _require_grant(tx: Tx, webhook: Webhook) -> None:
    """Reject enabling a webhook whose grant has ended."""
    if not await is_grant_valid(tx, webhook.id):
        raise Conflict(grants.grant_ended_message(webhook))
