"""Statements on webhooks and what they watch."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from urllib.parse import urlsplit

from hubgate.server.accounts.roles import Role
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Each
from hubgate.server.webhooks.entitled.store import may_know
from hubgate.server.webhooks.model import CANCELLED, DISABLED, ENABLED, SUSPENDED, Grant, Watch, Webhook

COLUMNS = ", ".join(f"w.{field.name}" for field in fields(Webhook))


async def find(tx: Tx | Database, webhook_id: str, user_id: str | None, org_id: str | None) -> Webhook | None:
    """One of this owner's."""
    row = await tx.one(
        f"SELECT {COLUMNS} FROM webhooks w WHERE w.id = :id AND (w.user_id = :user_id OR w.org_id = :org_id)",
        {"id": webhook_id, "user_id": user_id, "org_id": org_id},
    )
    return Webhook(*row) if row else None


async def hold(tx: Tx, webhook_id: str) -> Webhook | None:
    """As it is now; nobody else changes it until this unit ends."""
    row = await tx.one(
        f"UPDATE webhooks AS w SET state = state WHERE id = :id RETURNING {COLUMNS.replace('w.', '')}",
        {"id": webhook_id},
    )
    return Webhook(*row) if row else None


async def of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> list[Webhook]:
    """The oldest first; ids made within one second are in no order."""
    whose = "w.user_id = :user_id OR w.org_id = :org_id"
    rows = await tx.all(
        f"SELECT {COLUMNS} FROM webhooks w WHERE {whose} ORDER BY w.created_at, w.id",
        {"user_id": user_id, "org_id": org_id},
    )
    return [Webhook(*row) for row in rows]


async def hold_owner(tx: Tx, user_id: str | None, org_id: str | None) -> bool:
    """Whether it is still there; nobody else makes a webhook for it, or deletes it, until this unit ends."""
    table, owner_id = ("users", user_id) if user_id is not None else ("organizations", org_id)
    return await tx.one(f"UPDATE {table} SET name = name WHERE id = :id RETURNING id", {"id": owner_id}) is not None


async def count_of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> int:
    sql = "SELECT count(*) AS webhooks FROM webhooks WHERE user_id = :user_id OR org_id = :org_id"
    row = await tx.one(sql, {"user_id": user_id, "org_id": org_id})
    return int(row["webhooks"]) if row else 0


async def add(tx: Tx, webhook: Webhook) -> None:
    own = [field.name for field in fields(Webhook)]
    await tx.exec(
        f"""
        INSERT INTO webhooks ({", ".join(own)}, last_seq, quota_from, quota_used, failures)
        VALUES ({", ".join(f":{name}" for name in own)}, 0, 0, 0, 0)
        """,
        asdict(webhook),
    )


async def update(tx: Tx, webhook: Webhook) -> None:
    """What its owner sets."""
    await tx.exec(
        """
        UPDATE webhooks SET url = :url, domains = :domains, secret = :secret, old_secret = :old_secret,
            old_secret_until = :old_secret_until, ordered = :ordered, private_key = :private_key,
            public_key = :public_key
        WHERE id = :id
        """,
        {
            "id": webhook.id,
            "url": webhook.url,
            "domains": webhook.domains,
            "secret": webhook.secret,
            "old_secret": webhook.old_secret,
            "old_secret_until": webhook.old_secret_until,
            "ordered": webhook.ordered,
            "private_key": webhook.private_key,
            "public_key": webhook.public_key,
        },
    )


async def sealed(tx: Tx, after: str, most: int) -> Sequence[Row]:
    """id, secret, old_secret, private_key of the next, in the order of their ids."""
    return await tx.all(
        "SELECT id, secret, old_secret, private_key FROM webhooks WHERE id > :after ORDER BY id LIMIT :most",
        {"after": after, "most": most},
    )


async def reseal(tx: Tx, webhook_id: str, column: str, old: bytes, new: bytes) -> bool:
    """Whether it was still as it was read. `column` is one of those of `sealed`."""
    sql = f"UPDATE webhooks SET {column} = :new WHERE id = :id AND {column} = :old"
    return await tx.exec(sql, {"id": webhook_id, "old": old, "new": new}) == 1


async def enable(tx: Tx, webhook_id: str) -> None:
    """With a clean slate."""
    await tx.exec(f"UPDATE webhooks SET state = '{ENABLED}', suspended_at = NULL WHERE id = :id", {"id": webhook_id})
    await forgive(tx, webhook_id)


async def forgive(tx: Tx, webhook_id: str) -> None:
    """Neither the breaker nor the days of failure count on."""
    await tx.exec(
        """
        UPDATE webhooks SET failing_since = NULL, warned_at = NULL, failed_at = NULL, failures = 0, closed_until = 0
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


async def disable(tx: Tx, webhook_id: str) -> None:
    """Out of the line too: whoever looks for work must not step over it for as long as it is off."""
    sql = f"UPDATE webhooks SET state = '{DISABLED}', suspended_at = NULL, next_due_at = NULL WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id})


async def suspend(tx: Tx, webhook_id: str, now: int) -> bool:
    """Whether it was enabled until now."""
    sql = f"UPDATE webhooks SET state = '{SUSPENDED}', suspended_at = :now WHERE id = :id AND state = '{ENABLED}'"
    return await tx.exec(sql, {"id": webhook_id, "now": now}) == 1


async def ids_of_owner(tx: Tx, owner_id: str) -> list[str]:
    """Of a user or an organization, in the order in which everyone locks them."""
    sql = "SELECT id FROM webhooks WHERE user_id = :owner_id OR org_id = :owner_id ORDER BY id"
    return [row["id"] for row in await tx.all(sql, {"owner_id": owner_id})]


_GRANTED = f"SELECT {COLUMNS} FROM webhooks w WHERE w.client_id IS NOT NULL AND w.state = '{ENABLED}'"


async def granted(tx: Tx, after: str, most: int) -> list[Webhook]:
    """The next that apps created and that are enabled."""
    rows = await tx.all(f"{_GRANTED} AND w.id > :after ORDER BY w.id LIMIT :most", {"after": after, "most": most})
    return [Webhook(*row) for row in rows]


async def granted_by(tx: Tx, user_id: str, client_id: str) -> list[Webhook]:
    """Those that an app created for a user."""
    sql = f"{_GRANTED} AND w.client_id = :client_id AND w.granted_by = :user_id ORDER BY w.id"
    return [Webhook(*row) for row in await tx.all(sql, {"client_id": client_id, "user_id": user_id})]


async def set_grant(tx: Tx, webhook_id: str, grant: Grant, reach: Iterable[str], now: int) -> None:
    await tx.exec(
        """
        UPDATE webhooks SET client_id = :client_id, grant_kind = :kind, granted_by = :user_id,
            granted_scopes = :scopes, granted_at = :now
        WHERE id = :id
        """,
        {"id": webhook_id, "now": now, **asdict(grant)},
    )
    await set_reach(tx, webhook_id, reach)


async def consented(tx: Tx, grant: Grant) -> Sequence[Row]:
    """What is left of a consent: its scopes, and org_id and org_scopes of each organization it reaches."""
    return await tx.all(
        """
        SELECT c.scopes, co.org_id, co.scopes AS org_scopes FROM consents c
        LEFT JOIN consent_organizations co ON co.consent_id = c.id AND EXISTS (
            SELECT 1 FROM memberships m
            WHERE m.org_id = co.org_id AND m.user_id = c.user_id AND m.joined_at = co.joined_at
        )
        WHERE c.user_id = :user_id AND c.client_id = :client_id
        """,
        {"user_id": grant.user_id, "client_id": grant.client_id},
    )


async def exchangeable(tx: Tx, client_id: str) -> frozenset[str]:
    """The scopes for which an app may exchange tokens."""
    row = await tx.one("SELECT scopes, allowed_scopes FROM apps WHERE client_id = :id", {"id": client_id})
    if row is None:
        return frozenset()
    held = frozenset(parse_scopes(row["scopes"]))
    return held if row["allowed_scopes"] is None else held.intersection(json.loads(row["allowed_scopes"]))


async def reach(tx: Tx, webhook_id: str) -> frozenset[str]:
    row = await tx.one("SELECT reach FROM webhooks WHERE id = :id", {"id": webhook_id})
    return frozenset((row["reach"] or "").split()) if row else frozenset()


async def set_reach(tx: Tx, webhook_id: str, reach: Iterable[str]) -> None:
    sql = "UPDATE webhooks SET reach = :reach WHERE id = :id"
    await tx.exec(sql, {"id": webhook_id, "reach": " ".join(sorted(reach))})


async def app_name(tx: Tx, grant: Grant) -> str:
    """Of the app that created a webhook, as far as it is still known."""
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
    """For mails: the developer of an app chose it, and it may hold line breaks and hidden characters (attack O33)."""
    return " ".join("".join(char if char.isprintable() else " " for char in name).split())


async def abandon(tx: Tx, webhook_id: str, now: int) -> None:
    """Nobody's from here on: it watches nothing and sends nothing, and what is in the air is nobody's to write down."""
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
    """Some of its deliveries with their tries, by reference; itself once no more than those were left."""
    dropped = await tx.exec(
        """
        DELETE FROM deliveries WHERE id IN (
            SELECT id FROM deliveries WHERE webhook_id = :id ORDER BY seq LIMIT :most
        )
        """,
        {"id": webhook_id, "most": most},
    )
    if dropped < most:
        await tx.exec("DELETE FROM webhooks WHERE id = :id", {"id": webhook_id})


async def set_watches(tx: Tx, webhook_id: str, watches: Sequence[Watch], now: int) -> None:
    before = await tx.all(
        """
        SELECT x.type, x.key, COALESCE(x.made_at, w.created_at) AS made_at
        FROM watches x JOIN webhooks w ON w.id = x.webhook_id WHERE x.webhook_id = :id
        """,
        {"id": webhook_id},
    )
    made = {(row["type"], row["key"]): row["made_at"] for row in before}
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
                "made_at": made.get((watch.type, watch.key), now),
            }
            for position, watch in enumerate(watches)
        ],
    )


@dataclass(frozen=True, slots=True)
class Addressed:
    """Who is told about a webhook. `organization` is the name of one that owns it."""

    email: str
    organization: str | None
    url: str | None


async def owners_of(tx: Tx, webhook_id: str) -> list[Addressed]:
    """Its user, or the admins of its organization, as far as they can be written to."""
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
    return [Addressed(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Troubled:
    """`organization` is the name of one that owns it."""

    id: str
    url: str | None
    state: str
    organization: str | None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc if self.url else self.id

    @property
    def path(self) -> str:
        """Tells it from others of that host. Without the query, where keys are often put."""
        return urlsplit(self.url).path if self.url else ""


# Suspended, or failing for a while: the user's own and those of organizations the user administers.
_TROUBLED = f"""
    FROM webhooks w LEFT JOIN organizations o ON o.id = w.org_id
    WHERE (w.user_id = :user_id OR w.org_id IN (
            SELECT m.org_id FROM memberships m WHERE m.user_id = :user_id AND m.role = {int(Role.ADMIN)}))
        AND (w.state = '{SUSPENDED}' OR w.state = '{ENABLED}' AND w.failing_since < :failing_before)
"""


async def troubled(tx: Tx, user_id: str, failing_before: int, most: int) -> list[Troubled]:
    """The worst first."""
    rows = await tx.all(
        f"""
        SELECT w.id, w.url, w.state, o.name {_TROUBLED}
        ORDER BY CASE w.state WHEN '{SUSPENDED}' THEN 0 ELSE 1 END, COALESCE(w.failing_since, 0), w.id LIMIT :most
        """,
        {"user_id": user_id, "failing_before": failing_before, "most": most},
    )
    return [Troubled(*row) for row in rows]


async def count_troubled(tx: Tx, user_id: str, failing_before: int) -> dict[str | None, int]:
    """By the name of the organization, None for the user's own, which come first."""
    rows = await tx.all(
        f"SELECT o.name, count(*) AS webhooks {_TROUBLED} GROUP BY o.name",
        {"user_id": user_id, "failing_before": failing_before},
    )
    return {row["name"]: row["webhooks"] for row in sorted(rows, key=lambda row: row["name"] or "")}


# By the name its target has now. One that is gone keeps the name it was watched by, and so does a repo that the owner
# of the webhook may not see: how it is really spelled, or called since, would tell that it is there (attack W30).
_WATCHES = f"""
    SELECT x.webhook_id, x.type, COALESCE(u.name, o.name, COALESCE(ru.name, ro.name) || '/' || r.name, x.name) AS name,
        x.target_id
    FROM watches x JOIN webhooks w ON w.id = x.webhook_id
    LEFT JOIN users u ON x.type = 'user' AND u.id = x.target_id
    LEFT JOIN organizations o ON x.type = 'org' AND o.id = x.target_id
    LEFT JOIN repos r ON x.type NOT IN ('user', 'org') AND r.id = x.target_id
        AND {may_know("r.private", "r.owner_id", "r.id")}
    LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations ro ON ro.id = r.owner_id
"""


_PRIVATE_AMONG = Each("SELECT r.id FROM repos r WHERE r.id = :id AND r.private = 1", {"id": "text"})


async def watches_of(tx: Tx, webhook_id: str) -> list[Watch]:
    rows = await tx.all(f"{_WATCHES} WHERE x.webhook_id = :id ORDER BY x.position", {"id": webhook_id})
    return [Watch(row["type"], row["name"], row["target_id"]) for row in rows]


async def drop_beyond_grant(tx: Tx, webhook_id: str) -> None:
    """The watched repos that it may not report on."""
    await tx.exec(
        f"""
        DELETE FROM watches WHERE webhook_id = :id AND target_id IN (
            SELECT r.id FROM watches x JOIN webhooks w ON w.id = x.webhook_id JOIN repos r ON r.id = x.target_id
            WHERE x.webhook_id = :id AND NOT ({may_know("r.private", "r.owner_id", "r.id")})
        )
        """,
        {"id": webhook_id},
    )


async def private_among(tx: Tx, repo_ids: Iterable[str]) -> set[str]:
    rows = await tx.each(_PRIVATE_AMONG, [{"id": repo_id} for repo_id in repo_ids])
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
    """Who has the name, or had it and is found by it still."""
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
