"""Statements behind the activity of a webhook."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from hubgate.server.storage.database import Row, Tx


@dataclass(frozen=True, slots=True)
class Logged:
    """A delivery as its owner sees it."""

    id: str
    event_id: str
    seq: int
    repo_type: str
    repo_name: str
    scope: str
    action: str
    state: str
    reason: str
    status: int | None
    attempts: int
    due_at: int | None
    created_at: int
    ended_at: int | None
    replay_of: str
    is_test: int


_COLUMNS = ", ".join(f"d.{field.name}" for field in fields(Logged))


@dataclass(frozen=True)
class Filter:
    state: str = ""
    # With its namespace.
    repo: str = ""
    scope: str = ""


async def page(tx: Tx, webhook_id: str, wanted: Filter, before: int, most: int) -> list[Logged]:
    """The newest first."""
    conditions = ["d.webhook_id = :id", "d.seq < :before"]
    values: dict[str, str | int] = {"id": webhook_id, "before": before, "most": most}
    for column, value in (("state", wanted.state), ("repo_name", wanted.repo), ("scope", wanted.scope)):
        if value:
            conditions.append(f"d.{column} = :{column}")
            values[column] = value
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM deliveries d WHERE {' AND '.join(conditions)} ORDER BY d.seq DESC LIMIT :most", values
    )
    return [Logged(*row) for row in rows]


async def one(tx: Tx, webhook_id: str, delivery_id: str) -> Logged | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM deliveries d WHERE d.id = :id AND d.webhook_id = :webhook_id",
        {"id": delivery_id, "webhook_id": webhook_id},
    )
    return Logged(*row) if row else None


async def body(tx: Tx, delivery_id: str) -> bytes | None:
    row = await tx.one(
        """
        SELECT COALESCE(d.body, e.body) AS body FROM deliveries d LEFT JOIN events e ON e.id = d.event_id
        WHERE d.id = :id
        """,
        {"id": delivery_id},
    )
    return row["body"] if row else None


async def tries(tx: Tx, delivery_id: str) -> Sequence[Row]:
    """number, at, status, duration_ms, error, response."""
    return await tx.all(
        """
        SELECT number, at, status, duration_ms, error, response FROM attempts WHERE delivery_id = :id ORDER BY number
        """,
        {"id": delivery_id},
    )


async def origin(tx: Tx, webhook_id: str, delivery_id: str) -> Row | None:
    """What a replay repeats."""
    return await tx.one(
        """
        SELECT d.event_id, d.repo_id, d.repo_seq, d.repo_type, d.repo_name, d.scope, d.action, d.depth, d.is_test,
            d.body, COALESCE(r.owner_id, e.owner_id) AS owner_id, COALESCE(r.private, e.private) AS private
        FROM deliveries d LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
        WHERE d.id = :id AND d.webhook_id = :webhook_id
        """,
        {"id": delivery_id, "webhook_id": webhook_id},
    )


async def newest_event(tx: Tx, webhook_id: str) -> Row | None:
    """The newest repo the webhook matches: repo_id, owner_id, private."""
    return await tx.one(
        """
        SELECT r.id AS repo_id, r.owner_id, r.private FROM repos r
        WHERE r.id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id)
            OR r.owner_id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id)
        ORDER BY r.updated_at DESC, r.id DESC LIMIT 1
        """,
        {"id": webhook_id},
    )


async def next_number(tx: Tx, webhook_id: str, now: int) -> int | None:
    """For a delivery that nobody's change made: it does not count towards the quota."""
    row = await tx.one(
        "UPDATE webhooks SET last_seq = last_seq + 1, next_due_at = :now WHERE id = :id RETURNING last_seq",
        {"id": webhook_id, "now": now},
    )
    return row["last_seq"] if row else None
