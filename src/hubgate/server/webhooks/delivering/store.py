"""Statements on the queue of deliveries: what is put in, taken out unsent, and when it is due."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Each
from hubgate.server.webhooks.entitled.store import may_know as knowing
from hubgate.server.webhooks.model import FAILED, PENDING, RETRYING, SKIPPED, SUSPENDED

ALIVE = "state IN ('pending', 'retrying', 'parked')"


@dataclass(frozen=True, slots=True)
class NewDelivery:
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


_KNOWING = knowing("CAST(:private AS bigint)", "CAST(:owner_id AS text)", "CAST(:repo_id AS text)")


async def may_know(tx: Tx, webhook_id: str, owner_id: str, repo_id: str, private: int) -> bool:
    values: dict[str, str | int] = {"id": webhook_id, "owner_id": owner_id, "repo_id": repo_id, "private": private}
    return await tx.one(f"SELECT 1 FROM webhooks w WHERE w.id = :id AND {_KNOWING}", values) is not None


# When work of a webhook is due, but not before then: what was due long ago must not put it before all the others.
NEXT_DUE = f"""
    (SELECT CASE WHEN x.first < :not_before THEN CAST(:not_before AS bigint) ELSE x.first END FROM (
        SELECT min(d.due_at) AS first FROM deliveries d
        WHERE d.webhook_id = webhooks.id AND d.{ALIVE} AND d.lease_until IS NULL
    ) x)
"""


_REPLAN = Each(f"UPDATE webhooks SET next_due_at = {NEXT_DUE} /*pg FROM batch */ WHERE id = :id", {"id": "text"})


async def replan(tx: Tx, webhook_ids: Iterable[str], now: int) -> None:
    await tx.each(_REPLAN, [{"id": webhook_id} for webhook_id in webhook_ids], {"not_before": now})
