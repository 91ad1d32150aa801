"""Statements on the queue of deliveries that the rest of the hub uses: adding, skipping, queueing again, waking."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.model import FAILED, NO_ID, PENDING, RETRYING, SKIPPED, SUSPENDED
from hubgate.server.webhooks.permissions.store import could_read, may_read
from hubgate.server.webhooks.shards.store import wake

ALIVE = "state IN ('pending', 'retrying', 'parked')"

# The repo of a delivery `d`, as it is now and as it was at the event: events of a private repo stay private when the
# repo becomes public (attack W41).
ABOUT = """
    JOIN webhooks w ON w.id = d.webhook_id
    LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
"""
PRIVATE_NOW, OWNER_NOW = "COALESCE(r.private, e.private)", "COALESCE(r.owner_id, e.owner_id)"
# A test has no event. A test from before an app took the webhook over may contain what was private then.
PRIVATE_THEN = "COALESCE(e.private, CASE WHEN d.created_at < w.granted_at THEN 1 ELSE 0 END)"
OWNER_THEN = "COALESCE(e.owner_id, r.owner_id)"
MAY_GO = f"""
    (d.repo_id = '{NO_ID}' OR ({may_read(PRIVATE_NOW, OWNER_NOW, "d.repo_id")}
        AND {could_read(PRIVATE_THEN, OWNER_THEN, "d.repo_id")}))
"""


class NewDelivery(Struct, frozen=True):
    """The order of the fields is that of the insert."""

    id: str
    webhook_id: str
    event_id: str
    seq: int
    repo_id: str
    repo_seq: int
    repo_type: str
    repo_name: str
    scope: str
    action: str
    depth: int
    state: str
    reason: str
    due_at: int | None
    created_at: int
    replay_of: str = ""
    body: bytes | None = None
    is_test: int = 0
    attempts: int = 0


_NEW = [field.name for field in fields(NewDelivery)]
_ADD = f"INSERT INTO deliveries ({', '.join(_NEW)}) VALUES ({', '.join(f':{name}' for name in _NEW)})"


async def add(tx: Tx, deliveries: Sequence[NewDelivery]) -> None:
    if deliveries:
        await tx.exec_many(_ADD, [asdict(delivery) for delivery in deliveries])


# Deliveries that one unit skips or queues again. A background job does the rest (webhooks/management/backlogs.py).
BATCH = 1000


async def skip_all(tx: Tx, webhook_id: str, reason: str, now: int) -> None:
    """Skip all deliveries that wait, those of a large backlog later. A request in flight may still succeed; its
    delivery is then delivered.
    """
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
    """Queue missed deliveries again, those of a large backlog later, and return how many. They have the same ids: a
    receiver that already has one recognizes it.
    """
    queued = await missed(tx, webhook_id, since)
    await tx.exec(
        "UPDATE webhooks SET skip_through = 0, skip_reason = NULL, requeue_since = :since WHERE id = :id",
        {"id": webhook_id, "since": since},
    )
    await requeue_batch(tx, webhook_id, now)
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
