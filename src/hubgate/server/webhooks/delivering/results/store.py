"""Statements that write down what came of tries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Value, as_params, placed, places
from hubgate.server.webhooks.delivering.results.health import Health
from hubgate.server.webhooks.delivering.store import NEXT_DUE

MOST = 64


async def hold(tx: Tx, webhook_ids: Iterable[str]) -> None:
    """Nobody else claims, notes or switches for them until this unit ends."""
    await tx.exec_many("UPDATE webhooks SET turn = turn WHERE id = :id", [{"id": each} for each in sorted(webhook_ids)])


async def fares(tx: Tx, webhook_ids: Sequence[str]) -> dict[str, tuple[str, Health]]:
    """The state and health of each that still is there."""
    rows = await tx.all(
        f"""
        SELECT id, state, failures, closed_until, failing_since, warned_at FROM webhooks
        WHERE id IN ({places("id", MOST)})
        """,
        placed("id", webhook_ids, MOST),
    )
    return {row["id"]: (row["state"], Health(*tuple(row)[2:])) for row in rows}


async def held_leases(tx: Tx, delivery_ids: Sequence[str]) -> dict[str, Row]:
    """lease_token, attempts of each delivery that still is there."""
    rows = await tx.all(
        f"SELECT id, lease_token, attempts FROM deliveries WHERE id IN ({places('id', MOST)})",
        placed("id", delivery_ids, MOST),
    )
    return {row["id"]: row for row in rows}


@dataclass(frozen=True, slots=True)
class Attempt:
    """The order of the fields is that of the insert."""

    delivery_id: str
    number: int
    at: int
    url: str
    signature: str
    status: int | None
    duration_ms: int
    error: str
    response: bytes


_ATTEMPT = tuple(Attempt.__dataclass_fields__)


async def add_attempts(tx: Tx, attempts: Sequence[Attempt]) -> None:
    await tx.exec_many(
        f"INSERT INTO attempts ({', '.join(_ATTEMPT)}) VALUES ({', '.join(f':{name}' for name in _ATTEMPT)})",
        [as_params(attempt) for attempt in attempts],
    )


@dataclass(frozen=True, slots=True)
class End:
    """`due_at` is None where that was the last try. A try that was not made is not counted."""

    id: str
    token: str
    state: str
    reason: str
    status: int | None
    due_at: int | None
    counted: int


async def end_tries(tx: Tx, ends: Sequence[End], now: int) -> None:
    """Of deliveries whose lease is still held: a frozen worker records nothing."""
    await tx.exec_many(
        """
        UPDATE deliveries SET state = :state, reason = :reason, attempts = attempts + CAST(:counted AS bigint),
            status = CASE WHEN CAST(:counted AS bigint) = 1 THEN CAST(:status AS bigint) ELSE status END,
            tried_at = CASE WHEN CAST(:counted AS bigint) = 1 THEN COALESCE(tried_at, CAST(:now AS bigint))
                ELSE tried_at END,
            due_at = :due_at, lease_token = NULL, lease_until = NULL,
            ended_at = CASE WHEN CAST(:due_at AS bigint) IS NULL THEN CAST(:now AS bigint) END
        WHERE id = :id AND lease_token = :token
        """,
        [{**as_params(end), "now": now} for end in ends],
    )


async def set_health(tx: Tx, healths: Mapping[str, Health], now: int) -> None:
    """And the place in line: at its end, or when the breaker lets one through."""
    values: list[dict[str, Value]] = [
        {"id": webhook_id, **as_params(health), "not_before": max(now, health.closed_until)}
        for webhook_id, health in sorted(healths.items())
    ]
    await tx.exec_many(
        f"""
        UPDATE webhooks SET failures = :failures, closed_until = :closed_until, failing_since = :failing_since,
            warned_at = :warned_at, next_due_at = {NEXT_DUE}
        WHERE id = :id
        """,
        values,
    )
