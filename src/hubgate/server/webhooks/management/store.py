"""SQL statements for webhooks and their watches."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.store import under_membership
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import RowStatement, Value
from hubgate.server.webhooks.model import CANCELLED, DISABLED, ENABLED, SUSPENDED, Grant, Watch, Webhook
from hubgate.server.webhooks.options import OPTIONS
from hubgate.server.webhooks.permissions.store import ALIVE, EXCHANGED_UNDER, may_read

_OPTION_COLUMNS = tuple(option.name for option in OPTIONS)
_OTHER_COLUMNS = tuple(field.name for field in fields(Webhook) if field.name != "options")
_COLUMNS = _OTHER_COLUMNS + _OPTION_COLUMNS
COLUMNS = ", ".join(f"w.{name}" for name in _COLUMNS)
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
    """The webhooks of an owner, oldest first: ids created within a second are not ordered."""
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
    await tx.exec(
        f"""
        INSERT INTO webhooks ({", ".join(_COLUMNS)}, last_seq, quota_from, quota_used, failures)
        VALUES ({", ".join(f":{name}" for name in _COLUMNS)}, 0, 0, 0, 0)
        """,
        _values_of(webhook),
    )


async def update(tx: Tx, webhook: Webhook) -> None:
    """Store the settings with their version, the secrets and the key."""
    values = _values_of(webhook)
    await tx.exec(
        f"UPDATE webhooks SET {', '.join(f'{name} = :{name}' for name in _SETTINGS)} WHERE id = :id",
        {"id": webhook.id, **{name: values[name] for name in _SETTINGS}},
    )


async def sealed(tx: Tx, after: str, most: int) -> Sequence[Row]:
    """id, secret, old_secret, private_key of the webhooks after an id, ordered by id."""
    return await tx.all(
        "SELECT id, secret, old_secret, private_key FROM webhooks WHERE id > :after ORDER BY id LIMIT :most",
        {"after": after, "most": most},
    )


async def reseal(tx: Tx, webhook_id: str, column: str, old: bytes, new: bytes) -> bool:
    """Replace an encrypted value; False if it was changed concurrently. `column` is a column of `sealed`."""
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
        UPDATE webhooks SET failing_since = NULL, warned_at = NULL, failed_at = NULL, failures = 0, closed_until = 0
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


async def disable(tx: Tx, webhook_id: str) -> None:
    """Disable a webhook and remove it from the queue, so that workers do not scan past it."""
    sql = f"UPDATE webhooks SET state = '{DISABLED}', suspended_at = NULL, next_due_at = NULL WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id})


async def suspend(tx: Tx, webhook_id: str, now: int) -> bool:
    """Suspend a webhook; False if it was not enabled."""
    sql = f"UPDATE webhooks SET state = '{SUSPENDED}', suspended_at = :now WHERE id = :id AND state = '{ENABLED}'"
    return await tx.exec(sql, {"id": webhook_id, "now": now}) == 1


async def ids_of_owner(tx: Tx, owner_id: str) -> list[str]:
    """The webhooks of a user or an organization, in lock order."""
    sql = "SELECT id FROM webhooks WHERE user_id = :owner_id OR org_id = :owner_id ORDER BY id"
    return [row["id"] for row in await tx.all(sql, {"owner_id": owner_id})]


@dataclass(frozen=True, slots=True)
class Followed:
    """An enabled webhook of an app, with the reach of its grant at the last check."""

    webhook: Webhook
    reach: frozenset[str]
    # Whether the grant still allows the app to manage webhooks.
    is_alive: bool


_FOLLOWED = f"""
    SELECT {COLUMNS}, w.reach, CASE WHEN {ALIVE} THEN 1 ELSE 0 END AS is_alive
    FROM webhooks w WHERE w.client_id IS NOT NULL AND w.state = '{ENABLED}'
"""


async def granted(tx: Tx, after: str, most: int) -> list[Followed]:
    """Enabled webhooks of apps after an id, ordered by id."""
    sql = f"{_FOLLOWED} AND w.id > :after ORDER BY w.id LIMIT :most"
    return _followed(await tx.all(sql, {"after": after, "most": most}))


async def granted_by(tx: Tx, user_id: str, client_id: str) -> list[Followed]:
    """Enabled webhooks that a user granted to an app."""
    sql = f"{_FOLLOWED} AND w.client_id = :client_id AND w.granted_by = :user_id ORDER BY w.id"
    return _followed(await tx.all(sql, {"client_id": client_id, "user_id": user_id}))


async def granted_one(tx: Tx, webhook_id: str) -> list[Followed]:
    """The webhook as a list; empty if it is no longer an enabled webhook of an app."""
    return _followed(await tx.all(f"{_FOLLOWED} AND w.id = :id", {"id": webhook_id}))


def _followed(rows: Iterable[Row]) -> list[Followed]:
    return [Followed(webhook_of(row), frozenset((row["reach"] or "").split()), bool(row["is_alive"])) for row in rows]


async def set_grant(tx: Tx, webhook: Webhook, reach: Iterable[str], now: int) -> None:
    await tx.exec(
        f"""
        UPDATE webhooks AS w SET client_id = :client_id, grant_kind = :grant_kind, granted_by = :granted_by,
            granted_scopes = :granted_scopes, granted_at = :now, granted_under = ({EXCHANGED_UNDER}),
            taken_over = :taken_over, reach = :reach
        WHERE id = :id
        """,
        {
            "id": webhook.id,
            "client_id": webhook.client_id,
            "grant_kind": webhook.grant_kind,
            "granted_by": webhook.granted_by,
            "granted_scopes": webhook.granted_scopes,
            "taken_over": webhook.taken_over,
            "reach": " ".join(sorted(reach)),
            "now": now,
        },
    )


async def clear_grant(tx: Tx, webhook_id: str) -> None:
    await tx.exec(
        """
        UPDATE webhooks SET client_id = NULL, grant_kind = NULL, granted_by = NULL, granted_scopes = NULL,
            granted_at = NULL, granted_under = NULL, taken_over = 0, reach = NULL
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


_CONSENTED = RowStatement(
    f"""
    SELECT c.user_id, c.client_id, c.scopes, co.org_id, co.scopes AS org_scopes FROM consents c
    LEFT JOIN consent_organizations co ON co.consent_id = c.id AND EXISTS (
        SELECT 1 FROM memberships m WHERE {under_membership()}
    )
    WHERE c.user_id = :user_id AND c.client_id = :client_id
    """,
    {"user_id": "text", "client_id": "text"},
)
_EXCHANGEABLE = RowStatement(
    "SELECT a.client_id, a.scopes, a.allowed_scopes FROM apps a WHERE a.client_id = :client_id", {"client_id": "text"}
)


async def consented(tx: Tx, grants: Iterable[Grant]) -> dict[tuple[str, str], list[Row]]:
    """Present consents by user and client: their scopes, and org_id and org_scopes of each organization they cover."""
    keys = sorted({(grant.user_id, grant.client_id) for grant in grants})
    found: dict[tuple[str, str], list[Row]] = {}
    rows = [{"user_id": user_id, "client_id": client_id} for user_id, client_id in keys]
    for row in await tx.each(_CONSENTED, rows) if rows else ():
        found.setdefault((row["user_id"], row["client_id"]), []).append(row)
    return found


async def exchangeable(tx: Tx, grants: Iterable[Grant]) -> dict[str, frozenset[str]]:
    """The scopes for which apps may exchange tokens, by client."""
    rows: list[dict[str, Value]] = [{"client_id": each} for each in sorted({grant.client_id for grant in grants})]
    return {row["client_id"]: _exchangeable(row) for row in (await tx.each(_EXCHANGEABLE, rows) if rows else ())}


def _exchangeable(row: Row) -> frozenset[str]:
    scopes = frozenset(parse_scopes(row["scopes"]))
    return scopes if row["allowed_scopes"] is None else scopes.intersection(json.loads(row["allowed_scopes"]))


async def set_reach(tx: Tx, webhook_id: str, reach: Iterable[str]) -> None:
    sql = "UPDATE webhooks SET reach = :reach WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id, "reach": " ".join(sorted(reach))})


async def app_name(tx: Tx, grant: Grant) -> str:
    """The name of the app, from the app or from the consent; its client id if neither exists."""
    row = await tx.one(
        """
        SELECT COALESCE((SELECT a.name FROM apps a WHERE a.client_id = :client_id), (
            SELECT c.app_name FROM consents c WHERE c.client_id = :client_id AND c.user_id = :user_id
        )) AS name
        """,
        {"client_id": grant.client_id, "user_id": grant.user_id},
    )
    return _in_one_line((row["name"] if row else None) or "") or grant.client_id


def _in_one_line(name: str) -> str:
    """A name for mail without line breaks and invisible characters, which an app's developer can set (attack O33)."""
    return " ".join("".join(char if char.isprintable() else " " for char in name).split())


async def abandon(tx: Tx, webhook_id: str, now: int) -> None:
    """Remove the owner, the watches and the secrets, and revoke leases so that results in flight are not recorded."""
    await tx.exec(
        f"""
        UPDATE webhooks SET user_id = NULL, org_id = NULL, url = NULL, secret = NULL, old_secret = NULL,
            old_secret_until = NULL, state = '{DISABLED}', next_due_at = NULL
        WHERE id = :id
        """,
        {"id": webhook_id},
    )
    await tx.exec("DELETE FROM watches WHERE webhook_id = :id", {"id": webhook_id})
    await tx.exec(
        f"""
        UPDATE deliveries SET state = '{CANCELLED}', due_at = NULL, lease_token = NULL, lease_until = NULL,
            ended_at = :now
        WHERE webhook_id = :id AND lease_until IS NOT NULL
        """,
        {"id": webhook_id, "now": now},
    )


async def any_abandoned(tx: Tx) -> str | None:
    row = await tx.one("SELECT id FROM webhooks WHERE user_id IS NULL AND org_id IS NULL LIMIT 1")
    return row["id"] if row else None


async def drop_abandoned(tx: Tx, webhook_id: str, most: int) -> None:
    """Delete a batch of deliveries, with their attempts by cascade, and the webhook once no deliveries are left."""
    deleted = await tx.exec(
        """
        DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries WHERE webhook_id = :id ORDER BY seq LIMIT :most
        )
        """,
        {"id": webhook_id, "most": most},
    )
    if deleted < most:
        await tx.exec("DELETE FROM webhooks WHERE id = :id", {"id": webhook_id})


async def set_watches(tx: Tx, webhook_id: str, watches: Sequence[Watch], now: int) -> None:
    before = await tx.all(
        """
        SELECT x.type, x.key, COALESCE(x.made_at, w.created_at) AS made_at
        FROM watches x JOIN webhooks w ON w.id = x.webhook_id WHERE x.webhook_id = :id
        """,
        {"id": webhook_id},
    )
    created = {(row["type"], row["key"]): row["made_at"] for row in before}
    await tx.exec("DELETE FROM watches WHERE webhook_id = :id", {"id": webhook_id})
    await tx.exec_many(
        """
        INSERT INTO watches (webhook_id, type, key, name, target_id, position, made_at)
        VALUES (:webhook_id, :type, :key, :name, :target_id, :position, :made_at)
        """,
        [
            {
                "webhook_id": webhook_id,
                "type": watch.type,
                "key": watch.key,
                "name": watch.name,
                "target_id": watch.target_id,
                "position": position,
                "made_at": created.get((watch.type, watch.key), now),
            }
            for position, watch in enumerate(watches)
        ],
    )


@dataclass(frozen=True, slots=True)
class OwnerAddress:
    """A recipient of mail about a webhook. `organization` is the name of the owning organization, if any."""

    email: str
    organization: str | None
    url: str | None


async def owners_of(tx: Tx, webhook_id: str) -> list[OwnerAddress]:
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


@dataclass(frozen=True, slots=True)
class Troubled:
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


# Suspended or failing webhooks of the user and of organizations the user administers.
_TROUBLED = f"""
    FROM webhooks w LEFT JOIN organizations o ON o.id = w.org_id
    WHERE (w.user_id = :user_id OR w.org_id IN (
            SELECT m.org_id FROM memberships m WHERE m.user_id = :user_id AND m.role = {int(Role.ADMIN)}))
        AND (w.state = '{SUSPENDED}' OR w.state = '{ENABLED}' AND w.failing_since < :failing_before)
"""


async def troubled(tx: Tx, user_id: str, failing_before: int, most: int) -> list[Troubled]:
    """Suspended webhooks first, then those that have been failing longest."""
    rows = await tx.all(
        f"""
        SELECT w.id, w.url, w.state, o.name {_TROUBLED}
        ORDER BY CASE w.state WHEN '{SUSPENDED}' THEN 0 ELSE 1 END, COALESCE(w.failing_since, 0), w.id LIMIT :most
        """,
        {"user_id": user_id, "failing_before": failing_before, "most": most},
    )
    return [Troubled(*row) for row in rows]


async def count_troubled(tx: Tx, user_id: str, failing_before: int) -> dict[str | None, int]:
    """The number of webhooks by organization name; None, for the user's own, is first."""
    rows = await tx.all(
        f"SELECT o.name, count(*) AS webhooks {_TROUBLED} GROUP BY o.name",
        {"user_id": user_id, "failing_before": failing_before},
    )
    return {row["name"]: row["webhooks"] for row in sorted(rows, key=lambda row: row["name"] or "")}


# Watches under the present names of their targets. A deleted target has the watched name, and so has a repo that the
# webhook may not report on: its exact spelling or new name would reveal that it exists (attack W30).
_WATCHES = f"""
    SELECT x.webhook_id, x.type, COALESCE(u.name, o.name, COALESCE(ru.name, ro.name) || '/' || r.name, x.name) AS name,
        x.target_id
    FROM watches x JOIN webhooks w ON w.id = x.webhook_id
    LEFT JOIN users u ON x.type = 'user' AND u.id = x.target_id
    LEFT JOIN organizations o ON x.type = 'org' AND o.id = x.target_id
    LEFT JOIN repos r ON x.type NOT IN ('user', 'org') AND r.id = x.target_id
        AND {may_read("r.private", "r.owner_id", "r.id")}
    LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations ro ON ro.id = r.owner_id
"""


_PUBLIC_AMONG = RowStatement("SELECT r.id FROM repos r WHERE r.id = :id AND r.private = 0", {"id": "text"})


async def watches_of(tx: Tx, webhook_id: str) -> list[Watch]:
    rows = await tx.all(f"{_WATCHES} WHERE x.webhook_id = :id ORDER BY x.position", {"id": webhook_id})
    return [Watch(row["type"], row["name"], row["target_id"]) for row in rows]


async def drop_beyond_grant(tx: Tx, webhook_id: str) -> None:
    """Delete watches of repos that the webhook may not report on and of missing repos, whose names may be private."""
    await tx.exec(
        f"""
        DELETE FROM watches WHERE webhook_id = :id AND type NOT IN ('user', 'org') AND key NOT IN (
            SELECT x.key FROM watches x JOIN webhooks w ON w.id = x.webhook_id JOIN repos r ON r.id = x.target_id
            WHERE x.webhook_id = :id AND x.type = watches.type AND {may_read("r.private", "r.owner_id", "r.id")}
        )
        """,
        {"id": webhook_id},
    )


async def public_among(tx: Tx, repo_ids: Iterable[str]) -> set[str]:
    rows = await tx.each(_PUBLIC_AMONG, [{"id": repo_id} for repo_id in repo_ids])
    return {row["id"] for row in rows}


async def watches_of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> dict[str, list[Watch]]:
    rows = await tx.all(
        f"""
        {_WATCHES}
        WHERE w.user_id = :user_id OR w.org_id = :org_id ORDER BY x.webhook_id, x.position
        """,
        {"user_id": user_id, "org_id": org_id},
    )
    found: dict[str, list[Watch]] = {}
    for row in rows:
        found.setdefault(row["webhook_id"], []).append(Watch(row["type"], row["name"], row["target_id"]))
    return found


async def target_of(tx: Tx, watch: Watch) -> str | None:
    """The id of the account or repo with this name, also if the name redirects."""
    if watch.type in ("user", "org"):
        row: Row | None = await tx.one(
            "SELECT owner_id AS id FROM names WHERE key = :key AND kind = :kind",
            {"key": watch.key, "kind": watch.type},
        )
    else:
        owner, _, name = watch.key.partition("/")
        row = await tx.one(
            """
            SELECT p.repo_id AS id FROM names n
            JOIN repo_names p ON p.owner_id = n.owner_id AND p.type = :type AND p.key = :name
            WHERE n.key = :owner
            """,
            {"owner": owner, "name": name, "type": watch.type},
        )
    return row["id"] if row else None
