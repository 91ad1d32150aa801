"""SQL statements for the delivery log, replays and test deliveries."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import fields

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.ids import is_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import containing
from hubgate.server.webhooks.deliveries_store import (
    ABOUT,
    ALIVE,
    MAY_GO,
    OWNER_NOW,
    OWNER_THEN,
    PRIVATE_NOW,
    PRIVATE_THEN,
)
from hubgate.server.webhooks.model import LANE_BLOCKED_FOR, NO_ID, PARKED, SKIPPED
from hubgate.server.webhooks.permissions.store import may_read
from hubgate.server.webhooks.permissions.visible_store import SeesRepo


class LoggedDelivery(Struct, frozen=True):
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
    # Duration of the last attempt.
    duration_ms: int | None

    @property
    def origin(self) -> str | None:
        """The id of the delivery that this delivery replays."""
        origin = self.replay_of.partition(" ")[0]
        return origin if is_id(origin) else None


# For each repo of an ordered webhook with a recent failure: the first delivery that blocks later ones. Computed once
# per list, because a hundred thousand deliveries may be blocked.
_BLOCKED_REPOS = f"""
    WITH blocked AS MATERIALIZED (
        SELECT p.repo_id, min(p.repo_seq) AS blocked_from FROM deliveries p JOIN webhooks o ON o.id = p.webhook_id
        WHERE p.webhook_id = :webhook_id AND o.ordered = 1 AND p.{ALIVE} AND p.replay_of = ''
            AND p.tried_at > CAST(:now AS bigint) - {LANE_BLOCKED_FOR}
        GROUP BY p.repo_id
    )
"""
_DURATION = """
    COALESCE(
        (SELECT a.duration_ms FROM attempts a WHERE a.delivery_id = d.id ORDER BY a.number DESC LIMIT 1), d.duration_ms
    )
"""
# Deliveries blocked by an open circuit breaker or by an earlier delivery of the same repo are shown as parked, those of
# a backlog that is being skipped as skipped.
_STATE = f"""
    CASE WHEN d.{ALIVE} AND d.seq <= (SELECT w.skip_through FROM webhooks w WHERE w.id = :webhook_id) THEN '{SKIPPED}'
        WHEN d.{ALIVE} AND (
        (SELECT w.closed_until FROM webhooks w WHERE w.id = :webhook_id) > :now
        OR d.attempts = 0 AND d.replay_of = ''
            AND d.repo_seq > (SELECT b.blocked_from FROM blocked b WHERE b.repo_id = d.repo_id)
    ) THEN '{PARKED}' ELSE d.state END
"""
# Nothing is sent while the circuit breaker is open.
_DUE_AT = f"""
    CASE WHEN d.{ALIVE} THEN (
        SELECT CASE WHEN w.closed_until > :now AND w.closed_until > d.due_at THEN w.closed_until ELSE d.due_at END
        FROM webhooks w WHERE w.id = :webhook_id
    ) ELSE d.due_at END
"""
_DERIVED = {"duration_ms": _DURATION, "state": _STATE, "due_at": _DUE_AT}
_COLUMNS = ", ".join(
    f"{_DERIVED[field.name]} AS {field.name}" if field.name in _DERIVED else f"d.{field.name}"
    for field in fields(LoggedDelivery)
)


NOT_ANSWERED = (0, 0)


class DeliveryFilter(Struct, frozen=True):
    """Criteria for listing deliveries."""

    state: str = ""
    # Including its namespace.
    repo: str = ""
    scope: str = ""
    # A part of the repo's name, with or without its namespace.
    repo_part: str = ""
    # The status of the last response: `answered[0]` to `answered[1]`; (0, 0) if there was no response.
    answered: tuple[int, int] | None = None
    # Limits an app to deliveries it may see; None shows all deliveries.
    visible: VisibleRepos | None = None


async def page(
    tx: Tx, webhook_id: str, criteria: DeliveryFilter, before: int, limit: int, now: int
) -> list[LoggedDelivery]:
    """Matching deliveries before the sequence number `before`, newest first."""
    condition, values = _matching(webhook_id, criteria, now)
    rows = await tx.all(
        f"""
        {_BLOCKED_REPOS} SELECT {_COLUMNS} FROM deliveries d
        WHERE {condition} AND d.seq < :before ORDER BY d.seq DESC LIMIT :limit
        """,
        {**values, "before": before, "limit": limit},
    )
    return [LoggedDelivery(*row) for row in rows]


async def newer(
    tx: Tx, webhook_id: str, criteria: DeliveryFilter, after: int, limit: int, now: int
) -> list[LoggedDelivery]:
    """The matching deliveries that directly follow the sequence number `after`, newest first."""
    condition, values = _matching(webhook_id, criteria, now)
    rows = await tx.all(
        f"""
        {_BLOCKED_REPOS} SELECT {_COLUMNS} FROM deliveries d
        WHERE {condition} AND d.seq > :after ORDER BY d.seq LIMIT :limit
        """,
        {**values, "after": after, "limit": limit},
    )
    return [LoggedDelivery(*row) for row in reversed(rows)]


async def count(tx: Tx, webhook_id: str, criteria: DeliveryFilter, now: int) -> int:
    condition, values = _matching(webhook_id, criteria, now)
    row = await tx.one(f"{_BLOCKED_REPOS} SELECT count(*) AS deliveries FROM deliveries d WHERE {condition}", values)
    return int(row["deliveries"]) if row else 0


def _matching(webhook_id: str, criteria: DeliveryFilter, now: int) -> tuple[str, dict[str, str | int]]:
    conditions: list[str] = ["d.webhook_id = :webhook_id"]
    values: dict[str, str | int] = {"webhook_id": webhook_id, "now": now}
    for column, expression, value in (("state", _STATE, criteria.state), ("scope", "d.scope", criteria.scope)):
        if value:
            conditions.append(f"{expression} = :{column}")
            values[column] = value
    if criteria.repo:
        # Names are case-insensitive.
        conditions.append("lower(d.repo_name) = :repo")
        values["repo"] = criteria.repo.lower()
    if criteria.repo_part:
        conditions.append("lower(d.repo_name) LIKE :repo_part ESCAPE '!'")
        values["repo_part"] = containing(criteria.repo_part.lower())
    if criteria.answered == NOT_ANSWERED:
        conditions.append("d.status IS NULL AND d.attempts > 0")
    elif criteria.answered is not None:
        conditions.append("d.status >= :first_status AND d.status <= :last_status")
        values["first_status"], values["last_status"] = criteria.answered
    if criteria.visible is not None:
        conditions.append(visible_to_app(criteria.visible, values))
    return " AND ".join(conditions), values


def visible_to_app(visible: VisibleRepos, values: dict[str, str | int]) -> str:
    """The condition for deliveries an app may see: its current permissions must cover the repo as it is now and as it
    was at the event. The webhook may have reported on more before the app took it over, or while the app had more
    permissions (attack W41).
    """
    sees = SeesRepo(visible, values)
    return f"""
        (d.repo_id = '{NO_ID}' OR EXISTS (
            SELECT 1 FROM webhooks w LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
            WHERE w.id = d.webhook_id AND {sees(PRIVATE_NOW, OWNER_NOW)} AND {sees(PRIVATE_THEN, OWNER_THEN)}
        ))
    """


async def latest(tx: Tx, user_id: str | None, org_id: str | None, limit: int) -> Sequence[Row]:
    """webhook_id, state, created_at of the last deliveries of each webhook of an owner, oldest first."""
    return await tx.all(
        """
        SELECT d.webhook_id, d.state, d.created_at FROM webhooks w
        JOIN deliveries d ON d.webhook_id = w.id AND d.seq > w.last_seq - CAST(:limit AS bigint)
        WHERE w.user_id = :user_id OR w.org_id = :org_id ORDER BY d.webhook_id, d.seq
        """,
        {"user_id": user_id, "org_id": org_id, "limit": limit},
    )


async def one(
    tx: Tx, webhook_id: str, delivery_id: str, now: int, visible: VisibleRepos | None = None
) -> LoggedDelivery | None:
    condition, values = _matching(webhook_id, DeliveryFilter(visible=visible), now)
    row = await tx.one(
        f"{_BLOCKED_REPOS} SELECT {_COLUMNS} FROM deliveries d WHERE d.id = :id AND {condition}",
        {**values, "id": delivery_id},
    )
    return LoggedDelivery(*row) if row else None


async def of_event(tx: Tx, webhook_id: str, event_id: str, now: int) -> list[LoggedDelivery]:
    """The delivery of an event, followed by its replays."""
    rows = await tx.all(
        f"""
        {_BLOCKED_REPOS} SELECT {_COLUMNS} FROM deliveries d
        WHERE d.event_id = :event_id AND d.webhook_id = :webhook_id ORDER BY d.seq
        """,
        {"webhook_id": webhook_id, "event_id": event_id, "now": now},
    )
    return [LoggedDelivery(*row) for row in rows]


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


async def attempts(tx: Tx, delivery_id: str) -> Sequence[Row]:
    """The attempts of a delivery, in order: number, at, url, signature, status, duration_ms, error, response."""
    return await tx.all(
        """
        SELECT number, at, url, signature, status, duration_ms, error, response FROM attempts WHERE delivery_id = :id
        UNION ALL
        SELECT 1, first_at, first_url, signature, first_status, duration_ms, error, response FROM deliveries
        WHERE id = :id AND first_at IS NOT NULL
        ORDER BY 1
        """,
        {"id": delivery_id},
    )


async def columns_to_replay(tx: Tx, webhook_id: str, delivery_id: str) -> Row | None:
    """The columns that a replay copies. `may_read` is 0 if the owner of the webhook, or its app, may not read the repo
    now, and for a test about a repo that has been deleted.
    """
    return await tx.one(
        f"""
        SELECT d.event_id, d.repo_id, d.repo_seq, d.repo_type, d.repo_name, d.scope, d.action, d.depth, d.is_test,
            d.body, CASE WHEN {MAY_GO} THEN 1 ELSE 0 END AS may_read
        FROM deliveries d {ABOUT}
        WHERE d.id = :id AND d.webhook_id = :webhook_id
        """,
        {"id": delivery_id, "webhook_id": webhook_id},
    )


_MAY_READ = may_read("r.private", "r.owner_id", "r.id")


async def newest_repo(tx: Tx, webhook_id: str) -> Row | None:
    """The most recently updated repo that a webhook watches and may report on: id, type, name, owner_id, owner_name,
    private, head_sha, tags.
    """
    return await tx.one(
        f"""
        SELECT r.id, r.type, r.name, r.owner_id, COALESCE(ru.name, o.name) AS owner_name, r.private, r.head_sha, r.tags
        FROM repos r LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations o ON o.id = r.owner_id
        WHERE (r.id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id)
                OR r.owner_id IN (SELECT x.target_id FROM watches x WHERE x.webhook_id = :id))
            AND EXISTS (SELECT 1 FROM webhooks w WHERE w.id = :id AND {_MAY_READ})
        ORDER BY r.updated_at DESC, r.id DESC LIMIT 1
        """,
        {"id": webhook_id},
    )


async def reserve_seq(tx: Tx, webhook_id: str) -> Row | None:
    """Reserve a sequence number without using up quota, for a replay or a test, and return last_seq and state."""
    return await tx.one(
        "UPDATE webhooks SET last_seq = last_seq + 1 WHERE id = :id RETURNING last_seq, state", {"id": webhook_id}
    )


async def allow_probe(tx: Tx, webhook_id: str, now: int) -> None:
    """Half-open the circuit breaker."""
    await tx.exec(
        "UPDATE webhooks SET closed_until = :now, resets = resets + 1 WHERE id = :id AND closed_until > :now",
        {"id": webhook_id, "now": now},
    )
