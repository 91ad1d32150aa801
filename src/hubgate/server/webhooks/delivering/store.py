"""Statements on the queue of deliveries that the rest of the hub uses: adding, skipping, queueing again, waking."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import Params, RowStatement
from hubgate.server.webhooks.model import FAILED, NO_ID, PENDING, RETRYING, SKIPPED, SUSPENDED
from hubgate.server.webhooks.permissions.store import could_read, may_read

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


async def skip_all(tx: Tx, webhook_id: str, reason: str, now: int) -> int:
    """Skip all deliveries that wait. A request in flight may still succeed, and its delivery is then delivered."""
    return await tx.exec(
        f"""
        UPDATE deliveries SET state = '{SKIPPED}', reason = :reason, due_at = NULL, ended_at = :now
        WHERE webhook_id = :webhook_id AND {ALIVE}
        """,
        {"webhook_id": webhook_id, "reason": reason, "now": now},
    )


# Deliveries that were skipped because of a suspension, or failed since then. Earlier suspensions are left alone.
_MISSED = f"""
    webhook_id = :webhook_id AND (state = '{SKIPPED}' AND reason = '{SUSPENDED}' OR state = '{FAILED}')
    AND COALESCE(ended_at, created_at) >= :since
"""


async def missed(tx: Tx, webhook_id: str, since: int) -> int:
    """The number of deliveries that a webhook missed since it was suspended."""
    sql = f"SELECT count(*) AS missed FROM deliveries WHERE {_MISSED}"
    row = await tx.one(sql, {"webhook_id": webhook_id, "since": since})
    return int(row["missed"]) if row else 0


async def requeue_missed(tx: Tx, webhook_id: str, since: int, now: int) -> int:
    """Queue missed deliveries again, under the same ids: a receiver that already has one recognizes it."""
    queued = await tx.exec(
        f"""
        UPDATE deliveries SET state = CASE WHEN attempts = 0 THEN '{PENDING}' ELSE '{RETRYING}' END, reason = '',
            due_at = :now, ended_at = NULL
        WHERE {_MISSED}
        """,
        {"webhook_id": webhook_id, "since": since, "now": now},
    )
    await wake(tx, [webhook_id], now)
    return queued


SHARDS = 256
_WAKE = RowStatement(
    "INSERT INTO wakes (id, shard, webhook_id) SELECT :id, :shard, :webhook_id /*pg FROM batch */",
    {"id": "text", "shard": "bigint", "webhook_id": "text"},
)


def shard_of(webhook_id: str) -> int:
    """The shard of a webhook: the last two digits of its id, which are random."""
    return int(webhook_id[-2:], 16)


async def wake(tx: Tx, webhook_ids: Iterable[str], now: int) -> None:
    """Let the owner of each webhook's shard read the webhook again: deliveries were added, or settings changed.

    Every change adds rows, and the owner deletes those that it sees. So a change that is committed later than another
    is never overlooked, as it could be with a cursor over numbers that are drawn before the commit.
    """
    rows: list[Params] = [
        {"id": new_id(now), "shard": shard_of(webhook_id), "webhook_id": webhook_id} for webhook_id in webhook_ids
    ]
    await tx.each(_WAKE, rows)
    tx.signal(Signal.DELIVERIES)
