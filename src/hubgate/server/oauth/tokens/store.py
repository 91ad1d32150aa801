"""Statements on codes, access tokens and refresh tokens."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from hubgate.server.accounts.model import User
from hubgate.server.accounts.store import MEMBERSHIPS, PERSON, USER
from hubgate.server.oauth.tokens.model import AppToken, Code, RefreshToken
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import as_params


def _columns(shape: Any, prefix: str = "") -> str:
    return ", ".join(prefix + field.name for field in fields(shape))


def _insert(table: str, shape: Any) -> str:
    values = ", ".join(f":{field.name}" for field in fields(shape))
    return f"INSERT INTO {table} ({_columns(shape)}) VALUES ({values})"


def _with_user(table: str, shape: Any) -> str:
    return f"SELECT {USER}, {_columns(shape, 't.')} FROM {table} t JOIN users u ON u.id = t.user_id WHERE t.key = :key"


CODES, REFRESH_TOKENS = "codes", "refresh_tokens"
_CODE_WITH_USER = _with_user(CODES, Code)
_REFRESH_WITH_USER = _with_user(REFRESH_TOKENS, RefreshToken)
_OF_USER = len(User.__struct_fields__)

_ADD_CODE = _insert(CODES, Code)
_ADD_TOKEN = _insert("app_tokens", AppToken)
# Racers compute the same successor: one of them adds it, and it is everyone's. Given out again, it lasts from then on.
_ADD_REFRESH = (
    _insert(REFRESH_TOKENS, RefreshToken) + " ON CONFLICT (key) DO UPDATE SET expires_at = excluded.expires_at"
)

_CREDENTIAL = "t.client_id, t.consent_id, t.org_id, t.scopes, t.supersedes, t.created_at, t.expires_at, t.resources"

# An exchanged token lives as long as what it was taken under, without a break: the membership, the plan, the app's
# privilege. Whoever ends one of them clears the tokens away too; looked at here, no exchange slips past them.
STILL_UNDER = """
    (t.org_id IS NULL OR EXISTS (
        SELECT 1 FROM memberships xm JOIN organizations xo ON xo.id = xm.org_id JOIN apps xa ON xa.org_id = xo.id
        WHERE xm.org_id = t.org_id AND xm.user_id = t.user_id AND xm.joined_at <= t.created_at
            AND xo.plan = 'enterprise' AND xo.plan_since <= t.created_at
            AND xa.client_id = t.client_id AND xa.token_exchange = 1 AND xa.paused = 0
            AND xa.exchange_since <= t.created_at
    ))
"""

# With everything that decides about it now: the user, their memberships, what is left of the consent.
FIND_TOKEN = f"""
    SELECT {PERSON}, {_CREDENTIAL}, CASE WHEN t.resources = '' THEN c.scopes ELSE c.other_scopes END AS allowed,
        co.org_id, co.scopes, c.last_used_at
    FROM app_tokens t
    JOIN users u ON u.id = t.user_id {MEMBERSHIPS}
    LEFT JOIN consents c ON c.id = t.consent_id
    LEFT JOIN consent_organizations co ON co.consent_id = t.consent_id AND co.org_id = o.id
        AND co.joined_at = m.joined_at
    WHERE t.key = :key AND t.expires_at > :now AND u.disabled_at IS NULL AND {STILL_UNDER}
"""


async def find_token(db: Database, key: bytes, now: int) -> Sequence[Row]:
    return await db.few(FIND_TOKEN, {"key": key, "now": now})


async def token(tx: Tx | Database, key: bytes) -> AppToken | None:
    row = await tx.one(f"SELECT {_columns(AppToken)} FROM app_tokens WHERE key = :key", {"key": key})
    return AppToken(*row) if row else None


async def add_code(tx: Tx, code: Code) -> None:
    await tx.exec(_ADD_CODE, as_params(code))


async def code(tx: Tx | Database, key: bytes) -> Code | None:
    row = await tx.one(f"SELECT {_columns(Code)} FROM codes WHERE key = :key", {"key": key})
    return Code(*row) if row else None


async def code_with_user(tx: Tx, key: bytes) -> tuple[Code, User] | None:
    row = await tx.one(_CODE_WITH_USER, {"key": key})
    if row is None:
        return None
    values = tuple(row)
    return Code(*values[_OF_USER:]), User(*values[:_OF_USER])


async def redeem(tx: Tx, key: bytes, now: int) -> bool:
    """Of any number of redemptions at once, one wins (attack O14)."""
    row = await tx.one(
        "UPDATE codes SET redeemed_at = :now WHERE key = :key AND redeemed_at IS NULL RETURNING key",
        {"key": key, "now": now},
    )
    return row is not None


async def add_token(tx: Tx, token: AppToken) -> None:
    await tx.exec(_ADD_TOKEN, as_params(token))


async def refresh_token(tx: Tx | Database, key: bytes) -> RefreshToken | None:
    row = await tx.one(f"SELECT {_columns(RefreshToken)} FROM refresh_tokens WHERE key = :key", {"key": key})
    return RefreshToken(*row) if row else None


async def refresh_token_with_user(tx: Tx | Database, key: bytes) -> tuple[RefreshToken, User] | None:
    row = await tx.one(_REFRESH_WITH_USER, {"key": key})
    if row is None:
        return None
    values = tuple(row)
    return RefreshToken(*values[_OF_USER:]), User(*values[:_OF_USER])


async def add_refresh_token(tx: Tx, token: RefreshToken) -> None:
    await tx.exec(_ADD_REFRESH, as_params(token))


async def use_refresh_token(tx: Tx, token: RefreshToken, now: int, expires_at: int) -> None:
    """It lasts from this use on; the one before it has its grace left, and no more."""
    await tx.exec(
        """
        UPDATE refresh_tokens SET
            expires_at = CASE WHEN key = :key THEN CAST(:expires_at AS bigint) ELSE expires_at END,
            superseded_at = CASE WHEN key = :key THEN superseded_at ELSE COALESCE(superseded_at, :now) END
        WHERE key = :key OR key = :predecessor
        """,
        {"key": token.key, "predecessor": token.predecessor, "now": now, "expires_at": expires_at},
    )


async def supersede(tx: Tx, key: bytes, now: int) -> None:
    """From now on the refresh token has its grace left, and no more."""
    await tx.exec(
        "UPDATE refresh_tokens SET superseded_at = :now WHERE key = :key AND superseded_at IS NULL",
        {"key": key, "now": now},
    )


async def forget_superseding(tx: Tx, key: bytes) -> None:
    await tx.exec("UPDATE app_tokens SET supersedes = NULL WHERE key = :key", {"key": key})


async def end_family(tx: Tx, family: str) -> None:
    """Every token that came from one authorization; for a unit that holds the consent behind them."""
    await tx.exec("DELETE FROM app_tokens WHERE family = :family", {"family": family})
    await tx.exec("DELETE FROM refresh_tokens WHERE family = :family", {"family": family})


async def end_token(tx: Tx, key: bytes) -> None:
    await tx.exec("DELETE FROM app_tokens WHERE key = :key", {"key": key})


async def end_of_client(tx: Tx, client_id: str) -> None:
    """Exchanged ones; those of consents go with the consents."""
    await tx.exec("DELETE FROM app_tokens WHERE client_id = :client_id", {"client_id": client_id})


async def count_of_user(tx: Tx, user_id: str, now: int) -> tuple[int, int]:
    """Access tokens, and families of refresh tokens, that are good now."""
    row = await tx.one(
        f"""
        SELECT (SELECT count(*) FROM app_tokens t WHERE t.user_id = :user_id AND t.expires_at > :now AND {STILL_UNDER})
            AS tokens,
            (SELECT count(DISTINCT r.family) FROM refresh_tokens r WHERE r.user_id = :user_id AND r.expires_at > :now)
            AS families
        """,
        {"user_id": user_id, "now": now},
    )
    return (row["tokens"], row["families"]) if row else (0, 0)


async def end_of_user(tx: Tx, user_id: str) -> None:
    """Every code and token of every app; for a unit that holds the consents behind them."""
    for table in (CODES, REFRESH_TOKENS, "app_tokens"):
        await tx.exec(f"DELETE FROM {table} WHERE user_id = :user_id", {"user_id": user_id})


async def end_exchanged(tx: Tx, client_id: str) -> None:
    sql = "DELETE FROM app_tokens WHERE client_id = :client_id AND org_id IS NOT NULL"
    await tx.exec(sql, {"client_id": client_id})


async def take_scope_away(tx: Tx, client_id: str, scope: str) -> None:
    """From exchanged tokens; those of consents are cut down to the consents."""
    await tx.exec(
        """
        UPDATE app_tokens SET scopes = TRIM(REPLACE(' ' || scopes || ' ', :scope, ' '))
        WHERE client_id = :client_id AND org_id IS NOT NULL
        """,
        {"client_id": client_id, "scope": f" {scope} "},
    )


async def drop_expired(tx: Tx, table: str, now: int, most: int) -> int:
    """`table` is one of ours, never a caller's text."""
    return await tx.exec(
        f"DELETE FROM {table} WHERE key IN (SELECT key FROM {table} WHERE expires_at <= :now LIMIT :most)",
        {"now": now, "most": most},
    )
