"""Statements that store the results of attempts, and the health of webhooks."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of
from hubgate.server.webhooks.deliveries_store import ALIVE
from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.model import DELIVERED, SKIPPED


class Result(Struct):
    """The result of one attempt. `due_at` is None after the last attempt."""

    id: str
    webhook_id: str
    number: int
    state: str
    status: int | None
    due_at: int | None
    # When the first attempt of the delivery ended, and when this one did.
    tried_at: int
    ended_at: int
    at: int
    url: str
    signature: str
    duration_ms: int
    error: str
    response: bytes
    is_test: bool = False


# A request in flight may succeed after its delivery was skipped. A cancelled delivery stays cancelled.
# A deleted webhook has no owner while its rows are being deleted.
_STILL_OPEN = f"""
    id = :id AND ({ALIVE} OR (state = '{SKIPPED}' AND CAST(:state AS text) = '{DELIVERED}'))
    AND EXISTS (
        SELECT 1 FROM webhooks w WHERE w.id = deliveries.webhook_id AND COALESCE(w.user_id, w.org_id) IS NOT NULL
    )
"""
_COMMON = """
    state = :state, reason = '', attempts = :number, status = :status, due_at = :due_at, tried_at = :tried_at,
    ended_at = CASE WHEN CAST(:due_at AS bigint) IS NULL THEN CAST(:ended_at AS bigint) END
"""
_COMMON_COLUMNS = columns_of(text="id state", bigint="number status due_at tried_at ended_at")
_ATTEMPT_COLUMNS = columns_of(text="url signature error", bigint="at duration_ms", bytea="response")
# The first attempt is part of the delivery's row; most deliveries need no other.
_FIRST = RowStatement(
    f"""
    UPDATE deliveries SET {_COMMON}, first_at = :at, first_url = :url, signature = :signature, first_status = :status,
        duration_ms = :duration_ms, error = :error, response = :response /*pg FROM batch */
    WHERE {_STILL_OPEN}
    """,
    {**_COMMON_COLUMNS, **_ATTEMPT_COLUMNS},
)
_LATER = RowStatement(
    f"UPDATE deliveries SET {_COMMON} /*pg FROM batch */ WHERE {_STILL_OPEN} RETURNING id", _COMMON_COLUMNS
)
_ADD_ATTEMPT = RowStatement(
    f"""
    INSERT INTO attempts (delivery_id, number, status, {", ".join(_ATTEMPT_COLUMNS)})
    SELECT :id, :number, :status, {", ".join(f":{name}" for name in _ATTEMPT_COLUMNS)} /*pg FROM batch */ WHERE true
    ON CONFLICT DO NOTHING
    """,
    {**columns_of(text="id", bigint="number status"), **_ATTEMPT_COLUMNS},
)


async def record(tx: Tx, results: Sequence[Result]) -> None:
    """Store results, except of deleted and cancelled deliveries. It is idempotent: a commit may be in doubt."""
    await tx.each(_FIRST, [asdict(result) for result in results if result.number == 1])
    later = {result.id: result for result in results if result.number > 1}
    stored = await tx.each(_LATER, [asdict(result) for result in later.values()])
    await tx.each(_ADD_ATTEMPT, [asdict(later[row["id"]]) for row in stored])


_END_UNSENT = RowStatement(
    f"""
    UPDATE deliveries SET state = :state, reason = :reason, due_at = NULL, ended_at = :now /*pg FROM batch */
    WHERE id = :id AND {ALIVE}
    """,
    {"id": "text", "state": "text", "reason": "text"},
)


async def end_unsent(tx: Tx, ends: Iterable[tuple[str, str, str]], now: int) -> None:
    """End deliveries that will not be sent, given as (id, state, reason)."""
    rows: list[Params] = [{"id": each, "state": state, "reason": reason} for each, state, reason in ends]
    await tx.each(_END_UNSENT, rows, {"now": now})


_LOCK = RowStatement(
    "SELECT id, state, url, resets FROM webhooks WHERE id = :id /*pg FOR NO KEY UPDATE */", {"id": "text"}
)


async def lock_webhooks(tx: Tx, webhook_ids: Iterable[str]) -> dict[str, Row]:
    """Lock webhooks in the order of their ids, and read id, state, url, resets."""
    return {row["id"]: row for row in await tx.each(_LOCK, [{"id": each} for each in sorted(webhook_ids)])}


_SET_HEALTH = RowStatement(
    """
    UPDATE webhooks SET failures = :failures, closed_until = :closed_until, failing_since = :failing_since,
        warned_at = :warned_at, failed_at = :failed_at /*pg FROM batch */
    WHERE id = :id AND resets = :resets
    """,
    columns_of(text="id", bigint="resets failures closed_until failing_since warned_at failed_at"),
)


async def set_health(tx: Tx, healths: Mapping[str, tuple[int, Health]]) -> None:
    """Store the health of webhooks, given with the `resets` for which it holds: a reset takes precedence."""
    rows: list[Params] = [
        {"id": webhook_id, "resets": resets, **asdict(health)} for webhook_id, (resets, health) in healths.items()
    ]
    await tx.each(_SET_HEALTH, rows)
