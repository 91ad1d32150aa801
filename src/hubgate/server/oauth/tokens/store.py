"""SQL statements for codes, access tokens and refresh tokens."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.accounts.model import User
from hubgate.server.accounts.store import MEMBERSHIPS, PERSON, USER, current_membership_sql
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.apps.store import APP_COLUMN_COUNT, APP_COLUMNS, app_of
from hubgate.server.oauth.tokens.model import AppToken, Code, RefreshToken
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Statement, insert_row


def _columns(shape: Any, prefix: str = "") -> str:
    return ", ".join(prefix + field.name for field in fields(shape))


def _with_user(table: str, shape: Any) -> str:
    return f"SELECT {USER}, {_columns(shape, 't.')} FROM {table} t JOIN users u ON u.id = t.user_id WHERE t.key = :key"


CODES, REFRESH_TOKENS = "codes", "refresh_tokens"
_CODE_WITH_USER = _with_user(CODES, Code)
_REFRESH_WITH_USER = _with_user(REFRESH_TOKENS, RefreshToken)
_USER_COLUMN_COUNT = len(User.__struct_fields__)

_ADD_CODE = insert_row(f"INSERT INTO codes ({_columns(Code)})")
_ADD_TOKEN = insert_row(f"INSERT INTO app_tokens ({_columns(AppToken)})")
_ADD_REFRESH = insert_row(f"INSERT INTO refresh_tokens ({_columns(RefreshToken)})")

_INHERITED = ("client_id", "user_id", "consent_id", "scopes", "auth_time", "family", "resources", "claims")
_EXTEND = """
    UPDATE refresh_tokens SET
        expires_at = CASE WHEN key = :key THEN CAST(:expires_at AS bigint) ELSE expires_at END,
        superseded_at = CASE WHEN key = :key THEN superseded_at ELSE COALESCE(superseded_at, :now) END
    WHERE key = :key OR key = (SELECT t.predecessor FROM refresh_tokens t WHERE t.key = :key)
"""
_ADD_SUCCESSOR = f"""
    INSERT INTO refresh_tokens (key, predecessor, expires_at, {", ".join(_INHERITED)})
    SELECT :successor, t.key, CAST(:expires_at AS bigint), {", ".join(f"t.{name}" for name in _INHERITED)}
    FROM refresh_tokens t WHERE t.key = :key
    ON CONFLICT (key) DO UPDATE SET expires_at = excluded.expires_at
"""

_ACCESS_COLUMNS = """
    t.client_id, t.consent_id, t.org_id, t.scopes, t.supersedes, t.created_at, t.expires_at, t.resources, t.claims
"""

# An exchanged token is valid while membership, plan and the app's privilege last without interruption. Ending any of
# these deletes the tokens too; this check also covers a concurrent exchange.
EXCHANGE_STILL_VALID = """
    (t.org_id IS NULL OR EXISTS (
        SELECT 1 FROM memberships xm JOIN organizations xo ON xo.id = xm.org_id JOIN apps xa ON xa.org_id = xo.id
        WHERE xm.org_id = t.org_id AND xm.user_id = t.user_id AND xm.joined_at <= t.created_at
            AND xo.plan = 'enterprise' AND xo.plan_since <= t.created_at
            AND xa.client_id = t.client_id AND xa.token_exchange = 1 AND xa.paused = 0
            AND xa.exchange_since <= t.created_at
    ))
"""

# The token with its current permissions: the user, the memberships and the consent.
FIND_TOKEN = f"""
    SELECT {PERSON}, {_ACCESS_COLUMNS}, CASE WHEN t.resources = '' THEN c.scopes ELSE c.resource_scopes END AS allowed,
        co.org_id, co.scopes, c.last_used_at
    FROM app_tokens t
    JOIN users u ON u.id = t.user_id {MEMBERSHIPS}
    LEFT JOIN consents c ON c.id = t.consent_id
    LEFT JOIN consent_organizations co ON co.consent_id = t.consent_id AND {current_membership_sql()}
    WHERE t.key = :key AND t.expires_at > :now AND u.disabled_at IS NULL AND {EXCHANGE_STILL_VALID}
"""


# The app that asks, the owner of the token's app, the consent and the token. The user's name is null if the token is
# not valid.
_INTROSPECT = f"""
    SELECT {APP_COLUMNS}, ta.owner_id, ta.org_id, ta.self_registered, u.name, c.scopes, c.resource_scopes,
        {_columns(AppToken, "t.")}
    FROM app_secrets s JOIN apps a ON a.client_id = s.client_id
    LEFT JOIN app_tokens t ON t.key = :token AND t.expires_at > :now AND {EXCHANGE_STILL_VALID}
    LEFT JOIN users u ON u.id = t.user_id AND u.disabled_at IS NULL
    LEFT JOIN consents c ON c.id = t.consent_id LEFT JOIN apps ta ON ta.client_id = t.client_id
    WHERE s.key = :key AND s.client_id = :client_id AND (s.expires_at IS NULL OR s.expires_at > :now)
"""


class IntrospectedToken(Struct, frozen=True):
    """A token that is valid and belongs to a user whose account is not disabled."""

    user_name: str
    # The scopes of the consent, and those for other servers as stored; None without a consent.
    consented: str | None
    resource_scopes: str | None
    token: AppToken


async def introspect(
    db: Database, client_id: str, secret: bytes, token: bytes, now: int
) -> tuple[App, IntrospectedToken | None] | None:
    """The app with this secret, and the access token if it was issued to an app of the same owner."""
    row = await db.one(_INTROSPECT, {"client_id": client_id, "key": secret, "token": token, "now": now})
    if row is None:
        return None
    app = app_of(row)
    owner_id, org_id, self_registered, user_name, consented, resource_scopes, *columns = row[APP_COLUMN_COUNT:]
    found = AppToken(*columns)
    # Null if the app is not registered.
    has_same_owner = self_registered == 0 and (owner_id, org_id) == (app.owner_id, app.org_id)
    if user_name is None or not (has_same_owner or found.client_id == app.client_id):
        return app, None
    return app, IntrospectedToken(user_name, consented, resource_scopes, found)


async def find_token(db: Database, key: bytes, now: int) -> Sequence[Row]:
    return await db.few(FIND_TOKEN, {"key": key, "now": now})


async def token(tx: Tx | Database, key: bytes) -> AppToken | None:
    row = await tx.one(f"SELECT {_columns(AppToken)} FROM app_tokens WHERE key = :key", {"key": key})
    return AppToken(*row) if row else None


async def add_code(tx: Tx, code: Code) -> None:
    await tx.exec(_ADD_CODE, asdict(code))


async def code(tx: Tx | Database, key: bytes) -> Code | None:
    row = await tx.one(f"SELECT {_columns(Code)} FROM codes WHERE key = :key", {"key": key})
    return Code(*row) if row else None


async def code_with_user(tx: Tx, key: bytes) -> tuple[Code, User] | None:
    row = await tx.one(_CODE_WITH_USER, {"key": key})
    if row is None:
        return None
    values = tuple(row)
    return Code(*values[_USER_COLUMN_COUNT:]), User(*values[:_USER_COLUMN_COUNT])


async def redeem(tx: Tx, key: bytes, now: int) -> bool:
    """Mark a code as redeemed; of concurrent calls only one gets True (attack O14)."""
    row = await tx.one(
        "UPDATE codes SET redeemed_at = :now WHERE key = :key AND redeemed_at IS NULL RETURNING key",
        {"key": key, "now": now},
    )
    return row is not None


def adding_token(token: AppToken) -> Statement:
    return _ADD_TOKEN, asdict(token)


async def add_token(tx: Tx, token: AppToken) -> None:
    await tx.exec(*adding_token(token))


async def refresh_token(tx: Tx | Database, key: bytes) -> RefreshToken | None:
    row = await tx.one(f"SELECT {_columns(RefreshToken)} FROM refresh_tokens WHERE key = :key", {"key": key})
    return RefreshToken(*row) if row else None


async def refresh_token_with_user(tx: Tx | Database, key: bytes) -> tuple[RefreshToken, User] | None:
    row = await tx.one(_REFRESH_WITH_USER, {"key": key})
    if row is None:
        return None
    values = tuple(row)
    return RefreshToken(*values[_USER_COLUMN_COUNT:]), User(*values[:_USER_COLUMN_COUNT])


def adding_refresh_token(token: RefreshToken) -> Statement:
    return _ADD_REFRESH, asdict(token)


def rotating_refresh_token(key: bytes, successor: bytes, now: int, expires_at: int) -> list[Statement]:
    """Extend the token's expiry, start the grace period of its predecessor and add its successor.

    The successor has all scopes and servers of the family: narrowing one response does not narrow the next (RFC 6749,
    section 6). Concurrent refreshes derive the same successor: one inserts it, the others only extend its expiry.
    """
    return [
        (_EXTEND, {"key": key, "now": now, "expires_at": expires_at}),
        (_ADD_SUCCESSOR, {"key": key, "successor": successor, "expires_at": expires_at}),
    ]


async def supersede(tx: Tx, key: bytes, now: int) -> None:
    """Start the grace period of a refresh token, unless it has started already."""
    await tx.exec(
        "UPDATE refresh_tokens SET superseded_at = :now WHERE key = :key AND superseded_at IS NULL",
        {"key": key, "now": now},
    )


async def clear_supersedes(tx: Tx, key: bytes) -> None:
    await tx.exec("UPDATE app_tokens SET supersedes = NULL WHERE key = :key", {"key": key})


async def revoke_family(tx: Tx, family: str) -> None:
    """Delete all tokens from one authorization. The caller's transaction has locked the consent."""
    await tx.exec("DELETE FROM app_tokens WHERE family = :family", {"family": family})
    await tx.exec("DELETE FROM refresh_tokens WHERE family = :family", {"family": family})


async def revoke_token(tx: Tx, key: bytes) -> None:
    await tx.exec("DELETE FROM app_tokens WHERE key = :key", {"key": key})


async def revoke_app_tokens(tx: Tx, client_id: str) -> None:
    """Delete the app's access tokens. Tokens under a consent are deleted with the consent."""
    await tx.exec("DELETE FROM app_tokens WHERE client_id = :client_id", {"client_id": client_id})


async def count_user_tokens(tx: Tx, user_id: str, now: int) -> tuple[int, int]:
    """The numbers of valid access tokens and of unexpired refresh token families."""
    row = await tx.one(
        f"""
        SELECT (SELECT count(*) FROM app_tokens t
                WHERE t.user_id = :user_id AND t.expires_at > :now AND {EXCHANGE_STILL_VALID}) AS tokens,
            (SELECT count(DISTINCT r.family) FROM refresh_tokens r WHERE r.user_id = :user_id AND r.expires_at > :now)
            AS families
        """,
        {"user_id": user_id, "now": now},
    )
    return (row["tokens"], row["families"]) if row else (0, 0)


async def revoke_user_tokens(tx: Tx, user_id: str) -> None:
    """Delete the user's codes and tokens of every app. The caller's transaction has locked the consents."""
    for table in (CODES, REFRESH_TOKENS, "app_tokens"):
        await tx.exec(f"DELETE FROM {table} WHERE user_id = :user_id", {"user_id": user_id})


async def revoke_exchanged(tx: Tx, client_id: str) -> None:
    sql = "DELETE FROM app_tokens WHERE client_id = :client_id AND org_id IS NOT NULL"
    await tx.exec(sql, {"client_id": client_id})


async def remove_scope(tx: Tx, client_id: str, scope: str) -> None:
    """Remove the scope from exchanged tokens; other tokens are limited by their consents."""
    await tx.exec(
        """
        UPDATE app_tokens SET scopes = TRIM(REPLACE(' ' || scopes || ' ', :scope, ' '))
        WHERE client_id = :client_id AND org_id IS NOT NULL
        """,
        {"client_id": client_id, "scope": f" {scope} "},
    )


async def drop_expired(tx: Tx, table: str, now: int, limit: int) -> int:
    """Delete up to `limit` expired rows. `table` is never user input."""
    return await tx.exec(
        f"DELETE FROM {table} WHERE key IN (SELECT key FROM {table} WHERE expires_at <= :now LIMIT :limit)",
        {"now": now, "limit": limit},
    )
