"""Statements on the queue of deliveries: what is put in, taken out unsent, and when it is due."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import RowStatement
from hubgate.server.webhooks.model import FAILED, NO_ID, PENDING, RETRYING, SKIPPED, SUSPENDED
from hubgate.server.webhooks.permissions.store import could_read, may_read

ALIVE = "state IN ('pending', 'retrying', 'parked')"

# The repo of a delivery `d`, as it is now and as it was at the event: a repo that is made public keeps its past to
# itself (attack W41).
ABOUT = """
    JOIN webhooks w ON w.id = d.webhook_id
    LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
"""
PRIVATE_NOW, OWNER_NOW = "COALESCE(r.private, e.private)", "COALESCE(r.owner_id, e.owner_id)"
# A test has no event. One from before an app took the webhook over may tell of what was private then.
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


async def skip_all(tx: Tx, webhook_id: str, reason: str, now: int) -> int:
    """What waits. What is in the air is left: whoever sends it finds the webhook switched off."""
    return await tx.exec(
        f"""
        UPDATE deliveries SET state = '{SKIPPED}', reason = :reason, due_at = NULL, ended_at = :now
        WHERE webhook_id = :webhook_id AND {ALIVE} AND lease_until IS NULL
        """,
        {"webhook_id": webhook_id, "reason": reason, "now": now},
    )


# What a suspension cost: never sent because of it, or given up since. In an earlier one's time it is left alone.
_MISSED = f"""
    webhook_id = :webhook_id AND (state = '{SKIPPED}' AND reason = '{SUSPENDED}' OR state = '{FAILED}')
    AND COALESCE(ended_at, created_at) >= :since AND lease_until IS NULL
"""


async def missed(tx: Tx, webhook_id: str, since: int) -> int:
    """How many deliveries wait for a webhook that has been suspended since then."""
    sql = f"SELECT count(*) AS missed FROM deliveries WHERE {_MISSED}"
    row = await tx.one(sql, {"webhook_id": webhook_id, "since": since})
    return int(row["missed"]) if row else 0


async def requeue_missed(tx: Tx, webhook_id: str, since: int, now: int) -> int:
    """The same deliveries, under the same ids: a receiver that had one after all knows it again."""
    queued = await tx.exec(
        f"""
        UPDATE deliveries SET state = CASE WHEN attempts = 0 THEN '{PENDING}' ELSE '{RETRYING}' END, reason = '',
            due_at = :now, ended_at = NULL
        WHERE {_MISSED}
        """,
        {"webhook_id": webhook_id, "since": since, "now": now},
    )
    await replan(tx, [webhook_id], now)
    return queued


# When work of a webhook is due, but not before then: what was due long ago must not put it before all the others.
NEXT_DUE = f"""
    (SELECT CASE WHEN x.first < :not_before THEN CAST(:not_before AS bigint) ELSE x.first END FROM (
        SELECT min(d.due_at) AS first FROM deliveries d
        WHERE d.webhook_id = webhooks.id AND d.{ALIVE} AND d.lease_until IS NULL
    ) x)
"""


_REPLAN = RowStatement(
    f"UPDATE webhooks SET next_due_at = {NEXT_DUE} /*pg FROM batch */ WHERE id = :id", {"id": "text"}
)


async def replan(tx: Tx, webhook_ids: Iterable[str], now: int) -> None:
    await tx.each(_REPLAN, [{"id": webhook_id} for webhook_id in webhook_ids], {"not_before": now})
