"""SQL statements for webhooks."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import fields

from hubgate.server.accounts.roles import Role
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import RowStatement, Value, insert_row
from hubgate.server.webhooks.model import DISABLED, ENABLED, SUSPENDED, Webhook
from hubgate.server.webhooks.options import OPTIONS

_OPTION_COLUMNS = tuple(option.name for option in OPTIONS)
_OTHER_COLUMNS = tuple(field.name for field in fields(Webhook) if field.name != "options")
_COLUMN_NAMES = _OTHER_COLUMNS + _OPTION_COLUMNS
COLUMNS = ", ".join(f"w.{name}" for name in _COLUMN_NAMES)
_INITIAL_COUNTERS = {"last_seq": 0, "quota_from": 0, "quota_used": 0, "failures": 0}
_ADD = insert_row(f"INSERT INTO webhooks ({', '.join(_COLUMN_NAMES)}, {', '.join(_INITIAL_COUNTERS)})")
_SETTINGS = (
    "url",
    "domains",
    "secret",
    "old_secret",
    "old_secret_until",
    "private_key",
    "public_key",
    "version",
    *_OPTION_COLUMNS,
)


def webhook_of(row: Row) -> Webhook:
    """A webhook from a row that has `COLUMNS`."""
    options = {option.name: option.type(row[option.name]) for option in OPTIONS}
    return Webhook(**{name: row[name] for name in _OTHER_COLUMNS}, options=options)


def _values_of(webhook: Webhook) -> dict[str, Value]:
    options = {name: int(value) if isinstance(value, bool) else value for name, value in webhook.options.items()}
    return {**{name: getattr(webhook, name) for name in _OTHER_COLUMNS}, **options}


async def find(tx: Tx | Database, webhook_id: str, user_id: str | None, org_id: str | None) -> Webhook | None:
    """A webhook of this owner."""
    row = await tx.one(
        f"SELECT {COLUMNS} FROM webhooks w WHERE w.id = :id AND (w.user_id = :user_id OR w.org_id = :org_id)",
        {"id": webhook_id, "user_id": user_id, "org_id": org_id},
    )
    return webhook_of(row) if row else None


async def lock(tx: Tx, webhook_id: str) -> Webhook | None:
    """Lock a webhook until the transaction ends, and read it."""
    row = await tx.one(
        f"UPDATE webhooks AS w SET state = state WHERE id = :id RETURNING {COLUMNS.replace('w.', '')}",
        {"id": webhook_id},
    )
    return webhook_of(row) if row else None


async def of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> list[Webhook]:
    """The webhooks of an owner, oldest first."""
    is_owner = "w.user_id = :user_id OR w.org_id = :org_id"
    rows = await tx.all(
        f"SELECT {COLUMNS} FROM webhooks w WHERE {is_owner} ORDER BY w.created_at, w.id",
        {"user_id": user_id, "org_id": org_id},
    )
    return [webhook_of(row) for row in rows]


async def count_of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> int:
    sql = "SELECT count(*) AS webhooks FROM webhooks WHERE user_id = :user_id OR org_id = :org_id"
    row = await tx.one(sql, {"user_id": user_id, "org_id": org_id})
    return int(row["webhooks"]) if row else 0


async def add(tx: Tx, webhook: Webhook) -> None:
    await tx.exec(_ADD, {**_values_of(webhook), **_INITIAL_COUNTERS})


async def update(tx: Tx, webhook: Webhook) -> None:
    """Store the settings with their version, the secrets and the key."""
    values = _values_of(webhook)
    await tx.exec(
        f"UPDATE webhooks SET {', '.join(f'{name} = :{name}' for name in _SETTINGS)} WHERE id = :id",
        {"id": webhook.id, **{name: values[name] for name in _SETTINGS}},
    )


async def sealed_values(tx: Tx, after: str, limit: int) -> Sequence[Row]:
    """id, secret, old_secret, private_key of the webhooks after an id, ordered by id."""
    return await tx.all(
        "SELECT id, secret, old_secret, private_key FROM webhooks WHERE id > :after ORDER BY id LIMIT :limit",
        {"after": after, "limit": limit},
    )


async def replace_sealed_value(tx: Tx, webhook_id: str, column: str, old: bytes, new: bytes) -> bool:
    """Replace an encrypted value; False if it was changed concurrently. `column` is a column of `sealed_values`."""
    sql = f"UPDATE webhooks SET {column} = :new WHERE id = :id AND {column} = :old"
    return await tx.exec(sql, {"id": webhook_id, "old": old, "new": new}) == 1


async def enable(tx: Tx, webhook_id: str) -> None:
    """Enable a webhook and reset its failures."""
    await tx.exec(f"UPDATE webhooks SET state = '{ENABLED}', suspended_at = NULL WHERE id = :id", {"id": webhook_id})
    await reset_failures(tx, webhook_id)


async def reset_failures(tx: Tx, webhook_id: str) -> None:
    """Reset the failures and the circuit breaker."""
    await tx.exec(
        """
        UPDATE webhooks SET failing_since = NULL, warned_at = NULL, failed_at = NULL, failures = 0, closed_until = 0,
            resets = resets + 1
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


async def disable(tx: Tx, webhook_id: str) -> None:
    sql = f"UPDATE webhooks SET state = '{DISABLED}', suspended_at = NULL WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id})


async def suspend(tx: Tx, webhook_id: str, now: int) -> bool:
    """Suspend a webhook; False if it was not enabled."""
    sql = f"UPDATE webhooks SET state = '{SUSPENDED}', suspended_at = :now WHERE id = :id AND state = '{ENABLED}'"
    return await tx.exec(sql, {"id": webhook_id, "now": now}) == 1


class OwnerAddress(Struct, frozen=True):
    """A recipient of mail about a webhook. `organization` is the name of the owning organization, if any."""

    email: str
    organization: str | None
    url: str | None


async def owner_addresses(tx: Tx, webhook_id: str) -> list[OwnerAddress]:
    """The user, or the admins of the organization, who are enabled and have a verified email address."""
    rows = await tx.all(
        f"""
        SELECT u.email, o.name, w.url FROM webhooks w
        LEFT JOIN organizations o ON o.id = w.org_id
        LEFT JOIN memberships m ON m.org_id = w.org_id AND m.role = {int(Role.ADMIN)}
        JOIN users u ON u.id = COALESCE(w.user_id, m.user_id)
        WHERE w.id = :id AND u.disabled_at IS NULL AND u.email_verified_at IS NOT NULL ORDER BY u.id
        """,
        {"id": webhook_id},
    )
    return [OwnerAddress(*row) for row in rows]


class FailingWebhook(Struct, frozen=True):
    """A suspended or failing webhook. `organization` is the name of the owning organization, if any."""

    id: str
    url: str | None
    state: str
    organization: str | None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc if self.url else self.id

    @property
    def path(self) -> str:
        """The path of the URL, to tell apart webhooks with the same host. The query may contain keys."""
        return urlsplit(self.url).path if self.url else ""


# Webhooks of the user and of organizations the user administers.
_MANAGED = f"""
    (w.user_id = :user_id OR w.org_id IN (
        SELECT m.org_id FROM memberships m WHERE m.user_id = :user_id AND m.role = {int(Role.ADMIN)}))
"""
# Those that are suspended or failing.
_NEEDING_ATTENTION = f"""
    FROM webhooks w LEFT JOIN organizations o ON o.id = w.org_id
    WHERE {_MANAGED}
        AND (w.state = '{SUSPENDED}' OR w.state = '{ENABLED}' AND w.failing_since < :failing_before)
"""


async def busiest(tx: Tx, user_id: str, since: int, limit: int) -> list[tuple[Webhook, str | None]]:
    """Webhooks that the user manages, those with the most deliveries since a time first, and the names of the
    organizations that own them.
    """
    rows = await tx.all(
        f"""
        SELECT {COLUMNS}, o.name AS organization FROM webhooks w LEFT JOIN organizations o ON o.id = w.org_id
        WHERE {_MANAGED}
        ORDER BY (
            SELECT COALESCE(sum(h.total), 0) FROM delivery_hours h WHERE h.webhook_id = w.id AND h.hour >= :since
        ) DESC, w.created_at, w.id LIMIT :limit
        """,
        {"user_id": user_id, "since": since, "limit": limit},
    )
    return [(webhook_of(row), row["organization"]) for row in rows]


async def failing_webhooks(tx: Tx, user_id: str, failing_before: int, limit: int) -> list[FailingWebhook]:
    """Webhooks that need attention: suspended ones first, then those that have been failing longest."""
    rows = await tx.all(
        f"""
        SELECT w.id, w.url, w.state, o.name {_NEEDING_ATTENTION}
        ORDER BY CASE w.state WHEN '{SUSPENDED}' THEN 0 ELSE 1 END, COALESCE(w.failing_since, 0), w.id LIMIT :limit
        """,
        {"user_id": user_id, "failing_before": failing_before, "limit": limit},
    )
    return [FailingWebhook(*row) for row in rows]


async def count_failing(tx: Tx, user_id: str, failing_before: int) -> dict[str | None, int]:
    """The number of webhooks that need attention, by organization name; None, for the user's own, is first."""
    rows = await tx.all(
        f"SELECT o.name, count(*) AS webhooks {_NEEDING_ATTENTION} GROUP BY o.name",
        {"user_id": user_id, "failing_before": failing_before},
    )
    return {row["name"]: row["webhooks"] for row in sorted(rows, key=lambda row: row["name"] or "")}


async def with_backlog(db: Database) -> str | None:
    """A webhook with deliveries that are still to be skipped or queued again (`backlogs.py`)."""
    row = await db.one("SELECT id FROM webhooks WHERE skip_through > 0 OR requeue_since IS NOT NULL LIMIT 1")
    return row["id"] if row else None


# The number of deliveries of each kind considered: an estimate must not read a backlog of millions. The conditions are
# those of the partial indexes.
_SAMPLE = 10_000
_WAITING = " UNION ALL ".join(
    f"""
    SELECT * FROM (
        SELECT webhook_id, due_at FROM deliveries
        WHERE state IN ('pending', 'retrying', 'parked') AND {kind} LIMIT {_SAMPLE}
    ) {name}
    """
    for name, kind in (
        ("untried", "attempts = 0 AND replay_of = ''"),
        ("replays", "attempts = 0 AND replay_of <> ''"),
        ("retries", "attempts > 0"),
    )
)


async def oldest_waiting(db: Database, now: int) -> int | None:
    """The time of the oldest event not yet fanned out, or of the first due delivery of a webhook whose circuit breaker
    is closed. Of a large backlog, only some deliveries are considered.
    """
    row = await db.one(
        f"""
        SELECT min(x.moment) AS moment FROM (
            -- Adding 0 selects the index on events not fanned out; the index on created_at would scan all events.
            SELECT min(created_at + 0) AS moment FROM events WHERE fanned_at IS NULL
            UNION ALL
            SELECT min(s.due_at) FROM ({_WAITING}) s JOIN webhooks w ON w.id = s.webhook_id
            WHERE w.state = '{ENABLED}' AND w.closed_until <= :now
        ) x
        """,
        {"now": now},
    )
    return row["moment"] if row else None


_RESET = RowStatement("UPDATE webhooks SET resets = resets + 1 /*pg FROM batch */ WHERE id = :id", {"id": "text"})


async def reset_health(tx: Tx, webhook_ids: Iterable[str]) -> None:
    """Give the stored health of webhooks precedence over what is in memory."""
    await tx.each(_RESET, [{"id": webhook_id} for webhook_id in webhook_ids])
