"""SQL statements for token exchange: the member by e-mail address, and live tokens."""

from msgspec import Struct

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import Role
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.apps.store import APP_COLUMNS, app_of
from hubgate.server.oauth.exchange.model import Member, TokenFilter
from hubgate.server.oauth.tokens.store import EXCHANGE_STILL_VALID
from hubgate.server.storage.database import Tx

# With a prefix, because apps have columns of the same names.
_USER = ", ".join(f"u.{field} AS user_{field}" for field in User.__struct_fields__)
_SELECT_FACTS = f"""
    SELECT {APP_COLUMNS}, o.plan, o.plan_since, m.role, m.joined_at, {_USER}
    FROM apps a LEFT JOIN organizations o ON o.id = a.org_id
    LEFT JOIN users u ON u.email = :email LEFT JOIN memberships m ON m.user_id = u.id AND m.org_id = a.org_id
    WHERE a.client_id = :client_id
"""


async def app_plan_and_member(tx: Tx, client_id: str, email: str) -> tuple[App, str, Member | None] | None:
    """The app, its organization's plan and the member with this address; None if the app does not exist.

    One statement, with the same work for a member, a stranger and an unknown address (attack O42).
    """
    row = await tx.one(_SELECT_FACTS, {"client_id": client_id, "email": email})
    if row is None:
        return None
    app, member = app_of(row), None
    if row["role"] is not None:
        user = User(*(row[f"user_{field}"] for field in User.__struct_fields__))
        since = max(row["joined_at"], row["plan_since"], app.exchange.since)
        member = Member(user, Role(row["role"]), since)
    return app, row["plan"] or "", member


class MemberTokens(Struct, frozen=True):
    """A member for whom an app has live tokens: their number, when the newest was created and when the last expires."""

    user_id: str
    user_name: str
    tokens: int
    latest_at: int
    until: int


class ActiveToken(Struct, frozen=True):
    """A live exchanged token. `id` is its family, which no other token shares."""

    id: str
    client_id: str
    app_name: str
    organization: str
    user_id: str
    user_name: str
    scopes: str
    created_at: int
    expires_at: int


_IS_LIVE = f"t.expires_at > :now AND t.org_id IS NOT NULL AND {EXCHANGE_STILL_VALID}"
_SELECT_LIVE = f"""
    SELECT t.family, t.client_id, a.name, o.name, t.user_id, u.name, t.scopes, t.created_at, t.expires_at
    FROM app_tokens t JOIN users u ON u.id = t.user_id JOIN apps a ON a.client_id = t.client_id
    JOIN organizations o ON o.id = t.org_id
    WHERE {_IS_LIVE} AND (t.created_at, t.family) < (:before, :before_id)
"""
_NEWEST_FIRST = "ORDER BY t.created_at DESC, t.family DESC LIMIT :limit"


async def of_app(
    tx: Tx, app: App, token_filter: TokenFilter, before: tuple[int, str], now: int, limit: int
) -> list[ActiveToken]:
    """Live tokens of an app that match the filter, newest first."""
    condition, values = _condition(app, token_filter, now)
    rows = await tx.all(
        f"{_SELECT_LIVE} AND {condition} {_NEWEST_FIRST}",
        {**values, "before": before[0], "before_id": before[1], "limit": limit},
    )
    return [ActiveToken(*row) for row in rows]


async def of_member(tx: Tx, user_id: str, before: tuple[int, str], now: int, limit: int) -> list[ActiveToken]:
    """Live tokens for a user, of all organizations' apps, newest first."""
    rows = await tx.all(
        f"{_SELECT_LIVE} AND t.user_id = :user_id {_NEWEST_FIRST}",
        {"user_id": user_id, "now": now, "before": before[0], "before_id": before[1], "limit": limit},
    )
    return [ActiveToken(*row) for row in rows]


async def by_member(tx: Tx, app: App, after: str, now: int, limit: int) -> list[MemberTokens]:
    """Members for whom an app has live tokens, by name, ignoring case."""
    condition, values = _condition(app, TokenFilter(), now)
    rows = await tx.all(
        f"""
        SELECT t.user_id, u.name, count(*), max(t.created_at), max(t.expires_at)
        FROM app_tokens t JOIN users u ON u.id = t.user_id
        WHERE {_IS_LIVE} AND {condition} AND lower(u.name) > :after
        GROUP BY t.user_id, u.name ORDER BY lower(u.name) LIMIT :limit
        """,
        {**values, "after": after, "limit": limit},
    )
    return [MemberTokens(*row) for row in rows]


async def count(tx: Tx, app: App, token_filter: TokenFilter, now: int) -> int:
    condition, values = _condition(app, token_filter, now)
    row = await tx.one(f"SELECT count(*) AS n FROM app_tokens t WHERE {_IS_LIVE} AND {condition}", values)
    return int(row["n"]) if row else 0


async def revoke(tx: Tx, app: App, token_filter: TokenFilter, now: int) -> int:
    """Delete live tokens and return how many."""
    condition, values = _condition(app, token_filter, now)
    return await tx.exec(f"DELETE FROM app_tokens AS t WHERE {_IS_LIVE} AND {condition}", values)


def _condition(app: App, token_filter: TokenFilter, now: int) -> tuple[str, dict[str, str | int]]:
    """The SQL condition of a filter, with the parameters for it and for `_IS_LIVE`."""
    values: dict[str, str | int] = {"org_id": app.org_id or "", "client_id": app.client_id, "now": now}
    conditions = ["t.org_id = :org_id", "t.client_id = :client_id"]
    for name, condition, value in (
        ("token_id", "t.family = :token_id", token_filter.token_id),
        ("user_id", "t.user_id = :user_id", token_filter.user_id),
        ("since", "t.created_at >= :since", token_filter.since),
        ("until", "t.created_at <= :until", token_filter.until),
    ):
        if value is not None:
            conditions.append(condition)
            values[name] = value
    return " AND ".join(conditions), values
