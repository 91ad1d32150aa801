"""Statements behind the activity of a webhook."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from hubgate.server.access.sight import Sight
from hubgate.server.ids import is_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.delivering.store import ALIVE
from hubgate.server.webhooks.entitled.store import may_know
from hubgate.server.webhooks.model import HOLDS_LANE, NOBODY, PARKED


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
    repo_seq: int
    depth: int
    # Of the last try.
    duration_ms: int | None

    @property
    def origin(self) -> str | None:
        """The delivery that this one repeats."""
        origin = self.replay_of.partition(" ")[0]
        return origin if is_id(origin) else None


# Lanes of an ordered webhook that something holds, each from where on. Found once for all the rows of a list: a lane
# may be a hundred thousand long.
_HELD = f"""
    WITH held AS MATERIALIZED (
        SELECT p.repo_id, min(p.repo_seq) AS held_from FROM deliveries p JOIN webhooks o ON o.id = p.webhook_id
        WHERE p.webhook_id = :webhook_id AND o.ordered = 1 AND p.{ALIVE} AND p.replay_of = ''
            AND p.tried_at > CAST(:now AS bigint) - {HOLDS_LANE}
        GROUP BY p.repo_id
    )
"""
_DURATION = "(SELECT a.duration_ms FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.number DESC LIMIT 1)"
# What may not leave although nothing is wrong with it: its webhook's breaker is open, or one before it holds the lane.
_STATE = f"""
    CASE WHEN d.{ALIVE} AND d.lease_until IS NULL AND (
        (SELECT w.closed_until FROM webhooks w WHERE w.id = :webhook_id) > :now
        OR d.attempts = 0 AND d.replay_of = ''
            AND d.repo_seq > (SELECT h.held_from FROM held h WHERE h.repo_id = d.repo_id)
    ) THEN '{PARKED}' ELSE d.state END
"""
# While the breaker is open nothing leaves before it closes.
_DUE_AT = f"""
    CASE WHEN d.{ALIVE} AND d.lease_until IS NULL THEN (
        SELECT CASE WHEN w.closed_until > :now AND w.closed_until > d.due_at THEN w.closed_until ELSE d.due_at END
        FROM webhooks w WHERE w.id = :webhook_id
    ) ELSE d.due_at END
"""
_DERIVED = {"duration_ms": _DURATION, "state": _STATE, "due_at": _DUE_AT}
_COLUMNS = ", ".join(
    f"{_DERIVED[field.name]} AS {field.name}" if field.name in _DERIVED else f"d.{field.name}"
    for field in fields(Logged)
)


@dataclass(frozen=True)
class Filter:
    state: str = ""
    # With its namespace.
    repo: str = ""
    scope: str = ""
    # Of an app that asks; None shows everything.
    sight: Sight | None = field(default=None, kw_only=True)


async def page(tx: Tx, webhook_id: str, wanted: Filter, before: int, most: int, now: int) -> list[Logged]:
    """The newest first."""
    condition, values = _matching(webhook_id, wanted, now)
    rows = await tx.all(
        f"""
        {_HELD} SELECT {_COLUMNS} FROM deliveries d
        WHERE {condition} AND d.seq < :before ORDER BY d.seq DESC LIMIT :most
        """,
        {**values, "before": before, "most": most},
    )
    return [Logged(*row) for row in rows]


async def newer(tx: Tx, webhook_id: str, wanted: Filter, after: int, most: int, now: int) -> list[Logged]:
    """Those right above a place in the list; the newest first."""
    condition, values = _matching(webhook_id, wanted, now)
    rows = await tx.all(
        f"""
        {_HELD} SELECT {_COLUMNS} FROM deliveries d
        WHERE {condition} AND d.seq > :after ORDER BY d.seq LIMIT :most
        """,
        {**values, "after": after, "most": most},
    )
    return [Logged(*row) for row in reversed(rows)]


async def count(tx: Tx, webhook_id: str, wanted: Filter, now: int) -> int:
    condition, values = _matching(webhook_id, wanted, now)
    row = await tx.one(f"{_HELD} SELECT count(*) AS deliveries FROM deliveries d WHERE {condition}", values)
    return int(row["deliveries"]) if row else 0


def _matching(webhook_id: str, wanted: Filter, now: int) -> tuple[str, dict[str, str | int]]:
    conditions: list[str] = ["d.webhook_id = :webhook_id"]
    values: dict[str, str | int] = {"webhook_id": webhook_id, "now": now}
    for column, expression, value in (("state", _STATE, wanted.state), ("scope", "d.scope", wanted.scope)):
        if value:
            conditions.append(f"{expression} = :{column}")
            values[column] = value
    if wanted.repo:
        # Names are the same in either case.
        conditions.append("lower(d.repo_name) = :repo")
        values["repo"] = wanted.repo.lower()
    if wanted.sight is not None:
        conditions.append(_seen(wanted.sight, values))
    return " AND ".join(conditions), values


def _seen(sight: Sight, values: dict[str, str | int]) -> str:
    """Deliveries about what an app may see now: the webhook may have reported on more before it was the app's, or while
    the app was allowed more (attack W41).
    """

    def owned(column: str, owners: Sequence[str], name: str) -> str:
        named = {f"{name}{number}": owner for number, owner in enumerate(owners)}
        values.update(named)
        return f"{column} IN ({', '.join(f':{each}' for each in named) or 'NULL'})"

    values["seen_through"] = sight.client_id or ""
    there = "SELECT 1 FROM repos r WHERE r.id = d.repo_id"
    created = f"{owned('r.owner_id', sight.creators, 'made')} AND r.creator_client = :seen_through"
    return f"""
        (d.repo_id = '{NOBODY}'
            OR EXISTS ({there} AND (r.private = 0 OR {owned("r.owner_id", sight.owners, "seen")} OR ({created})))
            OR NOT EXISTS ({there}) AND EXISTS (
                SELECT 1 FROM events e WHERE e.id = d.event_id
                    AND (e.private = 0 OR {owned("e.owner_id", sight.owners, "seen")})
            ))
    """


async def latest(tx: Tx, user_id: str | None, org_id: str | None, most: int) -> Sequence[Row]:
    """webhook_id, state, created_at of the last deliveries of each webhook of an owner, the oldest first."""
    return await tx.all(
        """
        SELECT d.webhook_id, d.state, d.created_at FROM webhooks w
        JOIN deliveries d ON d.webhook_id = w.id AND d.seq > w.last_seq - CAST(:most AS bigint)
        WHERE w.user_id = :user_id OR w.org_id = :org_id ORDER BY d.webhook_id, d.seq
        """,
        {"user_id": user_id, "org_id": org_id, "most": most},
    )


async def one(tx: Tx, webhook_id: str, delivery_id: str, now: int, sight: Sight | None = None) -> Logged | None:
    condition, values = _matching(webhook_id, Filter(sight=sight), now)
    row = await tx.one(
        f"{_HELD} SELECT {_COLUMNS} FROM deliveries d WHERE d.id = :id AND {condition}", {**values, "id": delivery_id}
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


async def happened_at(tx: Tx, event_id: str) -> int | None:
    row = await tx.one("SELECT created_at FROM events WHERE id = :id", {"id": event_id})
    return row["created_at"] if row else None


async def tries(tx: Tx, delivery_id: str) -> Sequence[Row]:
    """number, at, url, signature, status, duration_ms, error, response."""
    return await tx.all(
        """
        SELECT number, at, url, signature, status, duration_ms, error, response FROM attempts
        WHERE delivery_id = :id ORDER BY number
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


_KNOWN = may_know("r.private", "r.owner_id", "r.id")


async def newest_repo(tx: Tx, webhook_id: str) -> Row | None:
    """What changed last of all that a webhook watches and its owner may read: id, type, name, owner_id, owner_name,
    private, head_sha, tags.
    """
    return await tx.one(
        f"""
        SELECT r.id, r.type, r.name, r.owner_id, COALESCE(ru.name, o.name) AS owner_name, r.private, r.head_sha, r.tags
        FROM repos r LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations o ON o.id = r.owner_id
        WHERE (r.id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id)
                OR r.owner_id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id))
            AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = :id AND {_KNOWN})
        ORDER BY r.updated_at DESC, r.id DESC LIMIT 1
        """,
        {"id": webhook_id},
    )


async def next_number(tx: Tx, webhook_id: str, now: int) -> Row | None:
    """last_seq and state, for a delivery that nobody's change made: it does not count towards the quota."""
    return await tx.one(
        "UPDATE webhooks SET last_seq = last_seq + 1, next_due_at = :now WHERE id = :id RETURNING last_seq, state",
        {"id": webhook_id, "now": now},
    )


async def let_one_through(tx: Tx, webhook_id: str, now: int) -> int:
    """The pause after failures ends, so that one may leave; when that one is due to be the first of all that waits."""
    await tx.exec(
        "UPDATE webhooks SET closed_until = :now WHERE id = :id AND closed_until > :now", {"id": webhook_id, "now": now}
    )
    row = await tx.one(
        f"SELECT min(due_at) AS first FROM deliveries WHERE webhook_id = :id AND {ALIVE} AND lease_until IS NULL",
        {"id": webhook_id},
    )
    first = row["first"] if row else None
    return now if first is None else min(now, int(first) - 1)
