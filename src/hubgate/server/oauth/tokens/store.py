"""Statements on codes, access tokens and refresh tokens."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from hubgate.server.accounts.store import MEMBERSHIPS, PERSON
from hubgate.server.oauth.tokens.model import AppToken, Code, RefreshToken
from hubgate.server.storage.database import Database, Row, Tx


def _columns(shape: Any, prefix: str = "") -> str:
    return ", ".join(prefix + field.name for field in fields(shape))


def _insert(table: str, shape: Any) -> str:
    values = ", ".join(f":{field.name}" for field in fields(shape))
    return f"INSERT INTO {table} ({_columns(shape)}) VALUES ({values})"


_ADD_CODE = _insert("codes", Code)
_ADD_TOKEN = _insert("app_tokens", AppToken)
# Racers compute the same successor: one of them adds it, and it is everyone's.
_ADD_REFRESH = _insert("refresh_tokens", RefreshToken) + " ON CONFLICT DO NOTHING"

_CREDENTIAL = "t.client_id, t.consent_id, t.org_id, t.scopes, t.supersedes, t.created_at, t.expires_at"

# With everything that decides about it now: the user, their memberships, what is left of the consent.
FIND_TOKEN = f"""
    SELECT {PERSON}, {_CREDENTIAL}, c.scopes, co.org_id, c.last_used_at FROM app_tokens t
    JOIN users u ON u.id = t.user_id {MEMBERSHIPS}
    LEFT JOIN consents c ON c.id = t.consent_id
    LEFT JOIN consent_organizations co ON co.consent_id = t.consent_id AND co.org_id = o.id
    WHERE t.key = :key AND t.expires_at > :now AND u.disabled_at IS NULL
"""


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


async def redeem(tx: Tx, key: bytes, now: int) -> bool:
    """Of any number of redemptions at once, one wins (attack O14)."""
    row = await tx.one(
        "UPDATE codes SET redeemed_at = :now WHERE key = :key AND redeemed_at IS NULL RETURNING key",
        {"key": key, "now": now},
    )
    return row is not None


async def add_token(tx: Tx, token: AppToken) -> None:
    await tx.exec(_ADD_TOKEN, asdict(token))


async def refresh_token(tx: Tx | Database, key: bytes) -> RefreshToken | None:
    row = await tx.one(f"SELECT {_columns(RefreshToken)} FROM refresh_tokens WHERE key = :key", {"key": key})
    return RefreshToken(*row) if row else None


async def add_refresh_token(tx: Tx, token: RefreshToken) -> None:
    await tx.exec(_ADD_REFRESH, asdict(token))


async def supersede(tx: Tx, key: bytes, now: int) -> None:
    """From now on the refresh token has its grace left, and no more."""
    await tx.exec(
        "UPDATE refresh_tokens SET superseded_at = :now WHERE key = :key AND superseded_at IS NULL",
        {"key": key, "now": now},
    )


async def forget_superseding(tx: Tx, key: bytes) -> None:
    await tx.exec("UPDATE app_tokens SET supersedes = NULL WHERE key = :key", {"key": key})


async def prolong_refresh_token(tx: Tx, key: bytes, expires_at: int) -> None:
    await tx.exec(
        "UPDATE refresh_tokens SET expires_at = :expires_at WHERE key = :key", {"key": key, "expires_at": expires_at}
    )


async def end_family(tx: Tx, family: str) -> None:
    """Every token that came from one authorization."""
    await tx.exec("DELETE FROM app_tokens WHERE family = :family", {"family": family})
    await tx.exec("DELETE FROM refresh_tokens WHERE family = :family", {"family": family})


async def end_token(tx: Tx, key: bytes) -> None:
    await tx.exec("DELETE FROM app_tokens WHERE key = :key", {"key": key})


async def end_of_client(tx: Tx, client_id: str) -> None:
    """Exchanged ones; those of consents go with the consents."""
    await tx.exec("DELETE FROM app_tokens WHERE client_id = :client_id", {"client_id": client_id})


async def end_exchanged(tx: Tx, client_id: str) -> None:
    sql = "DELETE FROM app_tokens WHERE client_id = :client_id AND org_id IS NOT NULL"
    await tx.exec(sql, {"client_id": client_id})


async def drop_expired(tx: Tx, table: str, now: int, most: int) -> int:
    """`table` is one of ours, never a caller's text."""
    return await tx.exec(
        f"DELETE FROM {table} WHERE key IN (SELECT key FROM {table} WHERE expires_at <= :now LIMIT :most)",
        {"now": now, "most": most},
    )
