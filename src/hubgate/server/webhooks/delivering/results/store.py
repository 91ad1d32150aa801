"""Statements that write down what came of tries."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Kind, Params, RowStatement
from hubgate.server.webhooks.delivering.results.health import Health
from hubgate.server.webhooks.delivering.store import NEXT_DUE

# Of one unit.
LIMIT = 256

_HOLD = RowStatement(
    """
    SELECT id, state, url, failures, closed_until, failing_since, warned_at, failed_at
    FROM webhooks WHERE id = :id
    /*pg FOR NO KEY UPDATE */
    """,
    {"id": "text"},
)


async def hold(tx: Tx, webhook_ids: Iterable[str]) -> dict[str, tuple[str, str | None, Health]]:
    """Nobody else claims, notes or switches for them until this unit ends. State, address and health of each that still
    is there.
    """
    rows = await tx.each(_HOLD, [{"id": one} for one in sorted(webhook_ids)])
    return {row["id"]: (row["state"], row["url"], Health(*tuple(row)[3:])) for row in rows}


_LEASES = RowStatement("SELECT id, lease_token, attempts FROM deliveries WHERE id = :id", {"id": "text"})


async def held_leases(tx: Tx, delivery_ids: Iterable[str]) -> dict[str, Row]:
    """lease_token, attempts of each delivery that still is there."""
    return {row["id"]: row for row in await tx.each(_LEASES, [{"id": one} for one in delivery_ids])}


class Attempt(Struct, frozen=True):
    delivery_id: str
    number: int
    at: int
    url: str
    signature: str
    status: int | None
    duration_ms: int
    error: str
    response: bytes


_KINDS: dict[str, Kind] = {
    "delivery_id": "text",
    "number": "bigint",
    "at": "bigint",
    "url": "text",
    "signature": "text",
    "status": "bigint",
    "duration_ms": "bigint",
    "error": "text",
    "response": "bytea",
}
_ADD_ATTEMPT = RowStatement(
    f"INSERT INTO attempts ({', '.join(_KINDS)}) SELECT {', '.join(f':{name}' for name in _KINDS)} /*pg FROM batch */",
    _KINDS,
)


async def add_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    await tx.each(_ADD_ATTEMPT, [asdict(attempt) for attempt in attempts])


class End(Struct, frozen=True):
    """`due_at` is None where that was the last try. A try that was not made is not counted."""

    id: str
    token: str
    state: str
    reason: str
    status: int | None
    due_at: int | None
    counted: int


_END = RowStatement(
    """
    UPDATE deliveries SET state = :state, reason = :reason, attempts = attempts + CAST(:counted AS bigint),
        status = CASE WHEN CAST(:counted AS bigint) = 1 THEN CAST(:status AS bigint) ELSE status END,
        tried_at = CASE WHEN CAST(:counted AS bigint) = 1 THEN COALESCE(tried_at, CAST(:now AS bigint))
            ELSE tried_at END,
        due_at = :due_at, lease_token = NULL, lease_until = NULL,
        ended_at = CASE WHEN CAST(:due_at AS bigint) IS NULL THEN CAST(:now AS bigint) END /*pg FROM batch */
    WHERE id = :id AND lease_token = :token
    """,
    {
        "id": "text",
        "token": "text",
        "state": "text",
        "reason": "text",
        "status": "bigint",
        "due_at": "bigint",
        "counted": "bigint",
    },
)


async def end_tries(tx: Tx, ends: Sequence[End], now: int) -> None:
    """Of deliveries whose lease is still held: a frozen worker records nothing."""
    await tx.each(_END, [asdict(end) for end in ends], {"now": now})


_SET_HEALTH = RowStatement(
    f"""
    UPDATE webhooks SET failures = :failures, closed_until = :closed_until, failing_since = :failing_since,
        warned_at = :warned_at, failed_at = :failed_at, next_due_at = {NEXT_DUE} /*pg FROM batch */
    WHERE id = :id
    """,
    {
        "id": "text",
        "failures": "bigint",
        "closed_until": "bigint",
        "failing_since": "bigint",
        "warned_at": "bigint",
        "failed_at": "bigint",
        "not_before": "bigint",
    },
)


async def set_health(tx: Tx, healths: Mapping[str, Health], now: int) -> None:
    """And the place in line: at its end, or when the breaker lets one through."""
    rows: list[Params] = [
        {"id": webhook_id, **asdict(health), "not_before": max(now, health.closed_until)}
        for webhook_id, health in healths.items()
    ]
    await tx.each(_SET_HEALTH, rows)
