"""Statements behind token exchange: the member by address, and the tokens that are alive."""

from dataclasses import dataclass

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.apps.store import APP, app_of
from hubgate.server.oauth.exchange.model import Member, Which
from hubgate.server.oauth.tokens.store import STILL_UNDER
from hubgate.server.storage.database import Tx

# Under names of their own: apps have some of the same.
_USER = ", ".join(f"u.{field} AS user_{field}" for field in User.__struct_fields__)
_FACTS = f"""
    SELECT {APP}, o.plan, o.plan_since, m.role, m.joined_at, {_USER}
    FROM apps a LEFT JOIN organizations o ON o.id = a.org_id
    LEFT JOIN users u ON u.email = :email LEFT JOIN memberships m ON m.user_id = u.id AND m.org_id = a.org_id
    WHERE a.client_id = :client_id
"""


async def app_plan_and_member(tx: Tx, client_id: str, email: str) -> tuple[App, str, Member | None] | None:
    """In one statement, which does the same for a member, a stranger and nobody (attack O42)."""
    row = await tx.one(_FACTS, {"client_id": client_id, "email": email})
    if row is None:
        return None
    app, member = app_of(row), None
    if row["role"] is not None:
        user = User(*(row[f"user_{field}"] for field in User.__struct_fields__))
        since = max(row["joined_at"], row["plan_since"], app.exchange.since)
        member = Member(user, Role(row["role"]), since)
    return app, row["plan"] or "", member


@dataclass(frozen=True, slots=True)
class Holding:
    """A member for whom an app has live tokens."""

    user_id: str
    user_name: str
    tokens: int
    latest_at: int
    until: int


@dataclass(frozen=True, slots=True)
class Alive:
    """An exchanged token as its organization and its member see it. The family is its own, so it serves as a name."""

    id: str
    client_id: str
    app_name: str
    organization: str
    user_id: str
    user_name: str
    scopes: str
    created_at: int
    expires_at: int


_ALIVE = f"t.expires_at > :now AND t.org_id IS NOT NULL AND {STILL_UNDER}"
_LISTED = f"""
    SELECT t.family, t.client_id, a.name, o.name, t.user_id, u.name, t.scopes, t.created_at, t.expires_at
    FROM app_tokens t JOIN users u ON u.id = t.user_id JOIN apps a ON a.client_id = t.client_id
    JOIN organizations o ON o.id = t.org_id
    WHERE {_ALIVE} AND (t.created_at, t.family) < (:before, :before_id)
"""
_LATEST_FIRST = "ORDER BY t.created_at DESC, t.family DESC LIMIT :most"


async def of_app(tx: Tx, app: App, which: Which, before: tuple[int, str], now: int, most: int) -> list[Alive]:
    """The latest first."""
    condition, values = _chosen(app, which, now)
    rows = await tx.all(
        f"{_LISTED} AND {condition} {_LATEST_FIRST}",
        {**values, "before": before[0], "before_id": before[1], "most": most},
    )
    return [Alive(*row) for row in rows]


async def of_member(tx: Tx, user_id: str, before: tuple[int, str], now: int, most: int) -> list[Alive]:
    """Whatever organization's they are. The latest first."""
    rows = await tx.all(
        f"{_LISTED} AND t.user_id = :user_id {_LATEST_FIRST}",
        {"user_id": user_id, "now": now, "before": before[0], "before_id": before[1], "most": most},
    )
    return [Alive(*row) for row in rows]


async def by_member(tx: Tx, app: App, after: str, now: int, most: int) -> list[Holding]:
    """By name, whatever its case."""
    condition, values = _chosen(app, Which(), now)
    rows = await tx.all(
        f"""
        SELECT t.user_id, u.name, count(*), max(t.created_at), max(t.expires_at)
        FROM app_tokens t JOIN users u ON u.id = t.user_id
        WHERE {_ALIVE} AND {condition} AND lower(u.name) > :after
        GROUP BY t.user_id, u.name ORDER BY lower(u.name) LIMIT :most
        """,
        {**values, "after": after, "most": most},
    )
    return [Holding(*row) for row in rows]


async def count(tx: Tx, app: App, which: Which, now: int) -> int:
    condition, values = _chosen(app, which, now)
    row = await tx.one(f"SELECT count(*) AS n FROM app_tokens t WHERE {_ALIVE} AND {condition}", values)
    return int(row["n"]) if row else 0


async def end(tx: Tx, app: App, which: Which, now: int) -> int:
    """How many were alive and are gone now."""
    condition, values = _chosen(app, which, now)
    return await tx.exec(f"DELETE FROM app_tokens AS t WHERE {_ALIVE} AND {condition}", values)


def _chosen(app: App, which: Which, now: int) -> tuple[str, dict[str, str | int]]:
    """What every given limit names, with the values that this and `_ALIVE` take."""
    values: dict[str, str | int] = {"org_id": app.org_id or "", "client_id": app.client_id, "now": now}
    conditions = ["t.org_id = :org_id", "t.client_id = :client_id"]
    for name, condition, value in (
        ("token_id", "t.family = :token_id", which.token_id),
        ("user_id", "t.user_id = :user_id", which.user_id),
        ("since", "t.created_at >= :since", which.since),
        ("until", "t.created_at <= :until", which.until),
    ):
        if value is not None:
            conditions.append(condition)
            values[name] = value
    return " AND ".join(conditions), values
