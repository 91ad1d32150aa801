"""SQL statements for token exchange: the member by e-mail address, new tokens, and live tokens."""

from operator import attrgetter

from msgspec import Struct

from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import ROLES
from hubgate.server.audit import store as audit_store
from hubgate.server.audit.model import Entry
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.apps.store import APP_COLUMNS, app_of
from hubgate.server.oauth.exchange.model import Member, Subject, TokenFilter
from hubgate.server.oauth.tokens.model import AppToken
from hubgate.server.oauth.tokens.store import EXCHANGE_STILL_VALID
from hubgate.server.storage.database import Batch, Database, Row, Tx
from hubgate.server.storage.sqltext import columns_of

# The settings and the membership that decide about an exchange, as one text: the statement that stores a token compares
# it. Whether plan and membership last without interruption is checked at each use of the token (EXCHANGE_STILL_VALID).
STATE = """
    a.scopes || '|' || a.extra_scopes || '|' || COALESCE(a.allowed_scopes, '') || '|' || COALESCE(a.allowed_roles, '')
    || '|' || COALESCE(a.allowed_networks, '') || '|' || a.token_duration || '|' || a.exchange_since
    || '|' || m.role || '|' || m.joined_at || '|' || u.email
"""
_USER = ", ".join(f"u.{field}" for field in User.__struct_fields__)
# Before the user's columns, and after the app's.
_FOUND = f"{STATE} AS state, o.plan, o.plan_since, m.role, m.joined_at"
_WITH_MEMBER = """
    LEFT JOIN organizations o ON o.id = a.org_id
    LEFT JOIN users u ON u.email = :email LEFT JOIN memberships m ON m.user_id = u.id AND m.org_id = a.org_id
"""
_SELECT = f"SELECT {APP_COLUMNS}, {_FOUND}, {_USER}"
_FIND = f"{_SELECT} FROM apps a {_WITH_MEMBER} WHERE a.client_id = :client_id"
_FIND_WITH_SECRET = f"""
    {_SELECT} FROM app_secrets s JOIN apps a ON a.client_id = s.client_id {_WITH_MEMBER}
    WHERE s.key = :key AND s.client_id = :client_id AND (s.expires_at IS NULL OR s.expires_at > :now)
"""
_USER_COLUMN_COUNT = len(User.__struct_fields__)
_FOUND_COLUMN_COUNT = 5


async def find(tx: Tx, client_id: str, email: str) -> Subject | None:
    """The app, its organization's plan and the member with this address; None if the app does not exist.

    One statement, with the same work for a member, a stranger and an unknown address (attack O42).
    """
    row = await tx.one(_FIND, {"client_id": client_id, "email": email})
    return _subject(row) if row else None


async def find_with_secret(db: Database | Tx, client_id: str, key: bytes, email: str, now: int) -> Subject | None:
    """Like `find`, if the secret is valid."""
    row = await db.one(_FIND_WITH_SECRET, {"client_id": client_id, "key": key, "email": email, "now": now})
    return _subject(row, key) if row else None


async def lock_app(tx: Tx, client_id: str) -> None:
    """Block changes of the app until the transaction ends, but not other exchanges."""
    await tx.one("SELECT 1 FROM apps WHERE client_id = :client_id /*pg FOR SHARE */", {"client_id": client_id})


def _subject(row: Row, secret: bytes = b"") -> Subject:
    values, app = tuple(row), app_of(row)
    state, plan, plan_since, role, joined_at = values[-_USER_COLUMN_COUNT - _FOUND_COLUMN_COUNT : -_USER_COLUMN_COUNT]
    if role is None:
        return Subject(app, plan or "", None, state, secret)
    since = max(joined_at, plan_since, app.exchange.since)
    return Subject(app, plan, Member(User(*values[-_USER_COLUMN_COUNT:]), ROLES[role], since), state, secret)


_TOKEN = columns_of(
    bytea="key", text="client_id user_id org_id scopes family resources claims", bigint="created_at expires_at"
)
# Compared in a scalar subquery, which PostgreSQL executes by key: it would read whole tables to join all rows at once.
# The locks wait for a concurrent change of the app or its secrets: that change then either sees this token or is seen
# here. So no token is left of a leaked secret that was replaced.
_ADD = Batch(
    name="app_tokens.exchange",
    key="key",
    columns={**_TOKEN, "state": "text", "secret": "bytea", **audit_store.ENTRY_COLUMNS},
    sql=f"""
    INSERT INTO app_tokens ({", ".join(_TOKEN)}) SELECT {", ".join(f"batch.{name}" for name in _TOKEN)} FROM batch
    WHERE batch.state = (
        SELECT {STATE} FROM apps a JOIN memberships m ON m.org_id = a.org_id AND m.user_id = batch.user_id
        JOIN users u ON u.id = m.user_id JOIN app_secrets s ON s.key = batch.secret AND s.client_id = a.client_id
        WHERE a.client_id = batch.client_id AND a.org_id = batch.org_id AND a.confidential = 1
            AND a.token_exchange = 1 AND a.paused = 0 AND a.daily_quota IS NULL
            AND u.disabled_at IS NULL AND u.email_verified_at IS NOT NULL
        /*pg FOR SHARE OF a, s */
    )
    RETURNING key
    """,
    then=audit_store.ADD_IN_BATCH,
)


_token_values = attrgetter(*_TOKEN)


async def add_token(db: Database, token: AppToken, subject: Subject, entry: Entry) -> bool:
    """Add a token and its audit entry; False if the secret, the app's settings or the membership have changed since."""
    values = dict(zip(_TOKEN, _token_values(token), strict=True))
    checked = {"state": subject.state, "secret": subject.secret}
    return await db.batch(_ADD, {**values, **checked, **audit_store.batch_values(entry)}) is not None


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
