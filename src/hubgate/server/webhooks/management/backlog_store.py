"""Statements that skip the waiting deliveries of a webhook, or queue missed ones again, in batches."""

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.activity.rollup_store import compute_again
from hubgate.server.webhooks.deliveries_store import ALIVE
from hubgate.server.webhooks.model import FAILED, PENDING, RETRYING, SKIPPED, SUSPENDED
from hubgate.server.webhooks.replaying.store import cancel_all
from hubgate.server.webhooks.shards.store import wake

# Deliveries that one unit skips or queues again. A background job does the rest (`backlogs.py`).
BATCH = 1000


async def skip_all(tx: Tx, webhook_id: str, reason: str, now: int) -> None:
    """Skip waiting deliveries: a batch now, the rest in the background. A request in flight may still succeed.
    Running replays are cancelled.
    """
    await cancel_all(tx, webhook_id, now)
    await tx.exec(
        "UPDATE webhooks SET skip_through = last_seq, skip_reason = :reason, requeue_since = NULL WHERE id = :id",
        {"id": webhook_id, "reason": reason},
    )
    await skip_batch(tx, webhook_id, now)


async def skip_batch(tx: Tx, webhook_id: str, now: int) -> bool:
    """Skip a batch of the deliveries that `skip_all` was called for; False after the last one."""
    skipped = await tx.exec(
        f"""
        UPDATE deliveries SET state = '{SKIPPED}', due_at = NULL, ended_at = :now,
            reason = (SELECT w.skip_reason FROM webhooks w WHERE w.id = :webhook_id)
        WHERE id IN (
            SELECT d.id FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
            WHERE d.webhook_id = :webhook_id AND d.{ALIVE} AND d.seq <= w.skip_through LIMIT {BATCH}
        )
        """,
        {"webhook_id": webhook_id, "now": now},
    )
    if skipped == BATCH:
        return True
    await tx.exec("UPDATE webhooks SET skip_through = 0, skip_reason = NULL WHERE id = :id", {"id": webhook_id})
    await wake(tx, [webhook_id], now)
    return False


# Deliveries that were skipped because of a suspension, or failed since then. Earlier suspensions are left alone.
_MISSED = f"""
    webhook_id = :webhook_id AND (state = '{SKIPPED}' AND reason = '{SUSPENDED}' OR state = '{FAILED}')
    AND COALESCE(ended_at, created_at) >= :since
"""


async def missed(tx: Tx, webhook_id: str, since: int) -> int:
    """How many deliveries a webhook missed since it was suspended, with those that are still to be skipped."""
    row = await tx.one(
        f"""
        SELECT count(*) AS missed FROM deliveries d
        WHERE {_MISSED} OR webhook_id = :webhook_id AND {ALIVE}
            AND seq <= (SELECT w.skip_through FROM webhooks w WHERE w.id = :webhook_id)
        """,
        {"webhook_id": webhook_id, "since": since},
    )
    return int(row["missed"]) if row else 0


async def requeue_missed(tx: Tx, webhook_id: str, since: int, now: int) -> int:
    """Queue missed deliveries again, a batch now and the rest in the background, and return how many. The ids stay the
    same, so that a receiver recognizes a delivery that it already has.
    """
    queued = await missed(tx, webhook_id, since)
    await tx.exec(
        "UPDATE webhooks SET skip_through = 0, skip_reason = NULL, requeue_since = :since WHERE id = :id",
        {"id": webhook_id, "since": since},
    )
    await requeue_batch(tx, webhook_id, now)
    await compute_again(tx, webhook_id, now)
    return queued


async def requeue_batch(tx: Tx, webhook_id: str, now: int) -> bool:
    """Queue a batch of the deliveries that `requeue_missed` was called for; False after the last one."""
    webhook = await tx.one("SELECT requeue_since FROM webhooks WHERE id = :id", {"id": webhook_id})
    if webhook is None or webhook["requeue_since"] is None:
        return False
    queued = await tx.exec(
        f"""
        UPDATE deliveries SET state = CASE WHEN attempts = 0 THEN '{PENDING}' ELSE '{RETRYING}' END, reason = '',
            due_at = :now, ended_at = NULL
        WHERE id IN (SELECT id FROM deliveries WHERE {_MISSED} LIMIT {BATCH})
        """,
        {"webhook_id": webhook_id, "since": webhook["requeue_since"], "now": now},
    )
    if queued == BATCH:
        return True
    await tx.exec("UPDATE webhooks SET requeue_since = NULL WHERE id = :id", {"id": webhook_id})
    await wake(tx, [webhook_id], now)
    return False
