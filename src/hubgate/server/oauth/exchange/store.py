"""Statements behind token exchange: the member by address, and the tokens that are alive."""

from collections.abc import Sequence
from dataclasses import dataclass

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.store import USER
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange.model import Member
from hubgate.server.storage.database import Database, Tx

_OF_USER = len(User.__struct_fields__)


async def app_and_plan(tx: Tx | Database, client_id: str) -> tuple[App, str] | None:
    app = await app_store.find(tx, client_id)
    if app is None:
        return None
    row = await tx.one("SELECT plan FROM organizations WHERE id = :id", {"id": app.org_id})
    return app, row["plan"] if row else ""


async def member(tx: Tx | Database, org_id: str, email: str) -> Member | None:
    row = await tx.one(
        f"""
        SELECT {USER}, m.role FROM users u JOIN memberships m ON m.user_id = u.id AND m.org_id = :org_id
        WHERE u.email = :email
        """,
        {"org_id": org_id, "email": email},
    )
    if row is None:
        return None
    values = tuple(row)
    return Member(User(*values[:_OF_USER]), Role(values[_OF_USER]))


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


_ALIVE = """
    SELECT t.family, t.client_id, a.name, o.name, t.user_id, u.name, t.scopes, t.created_at, t.expires_at
    FROM app_tokens t JOIN users u ON u.id = t.user_id JOIN apps a ON a.client_id = t.client_id
    JOIN organizations o ON o.id = t.org_id
    JOIN memberships m ON m.org_id = t.org_id AND m.user_id = t.user_id AND m.joined_at <= t.created_at
    WHERE t.expires_at > :now
"""


async def of_app(
    tx: Tx, org_id: str, client_id: str, user_id: str | None, before: tuple[int, str], now: int, most: int
) -> list[Alive]:
    """The latest first; of one member, or of all."""
    values: dict[str, str | int] = {"org_id": org_id, "client_id": client_id, "now": now, "most": most}
    values |= {"before": before[0], "before_id": before[1]}
    one = ""
    if user_id is not None:
        one, values["user_id"] = "AND t.user_id = :user_id", user_id
    rows = await tx.all(
        f"""
        {_ALIVE} AND t.org_id = :org_id AND t.client_id = :client_id {one}
            AND (t.created_at, t.family) < (:before, :before_id)
        ORDER BY t.created_at DESC, t.family DESC LIMIT :most
        """,
        values,
    )
    return [Alive(*row) for row in rows]


async def of_member(tx: Tx, user_id: str, now: int, most: int) -> list[Alive]:
    rows = await tx.all(
        f"{_ALIVE} AND t.user_id = :user_id AND t.org_id IS NOT NULL ORDER BY t.created_at DESC LIMIT :most",
        {"user_id": user_id, "now": now, "most": most},
    )
    return [Alive(*row) for row in rows]


async def end(
    tx: Tx,
    org_id: str,
    client_id: str,
    *,
    family: str | None = None,
    user_id: str | None = None,
    since: int | None = None,
    until: int | None = None,
) -> int:
    """How many were ended, of those that every given limit names."""
    limits: Sequence[tuple[str, str | int | None]] = (
        ("family = :family", family),
        ("user_id = :user_id", user_id),
        ("created_at >= :since", since),
        ("created_at <= :until", until),
    )
    values: dict[str, str | int] = {"org_id": org_id, "client_id": client_id}
    conditions = ["org_id = :org_id", "client_id = :client_id"]
    for condition, value in limits:
        if value is not None:
            conditions.append(condition)
            values[condition.rpartition(":")[2]] = value
    return await tx.exec(f"DELETE FROM app_tokens WHERE {' AND '.join(conditions)}", values)
