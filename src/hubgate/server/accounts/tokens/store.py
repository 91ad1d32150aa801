"""SQL statements on personal tokens."""

from collections.abc import Sequence

from msgspec.structs import asdict

from hubgate.server.accounts.model import Person, person_of
from hubgate.server.accounts.store import MEMBERSHIPS, PERSON
from hubgate.server.accounts.tokens.model import PersonalToken
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row

COLUMNS = """t.id, t.user_id, t.name, t.role, t.last_four, t.created_at, t.last_used_at, t.last_used_ip, t.expires_at,
    t.scopes"""
_WIDTH = 10

_BY_KEY = f"""
    SELECT {PERSON}, {COLUMNS} FROM access_tokens t JOIN users u ON u.id = t.user_id {MEMBERSHIPS}
    WHERE t.key = :key AND u.disabled_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > :now)
"""


async def find(db: Database, key: bytes, now: int) -> tuple[Person, PersonalToken] | None:
    """The unexpired token with its user and the user's memberships, all current. Limits are not read."""
    rows = await db.few(_BY_KEY, {"key": key, "now": now})
    if not rows:
        return None
    return person_of(rows), PersonalToken.of(tuple(rows[0])[-_WIDTH:])


_ADDED = ("id", "user_id", "name", "last_four", "created_at", "expires_at", "scopes")
_ADD = insert_row(f"INSERT INTO access_tokens (key, role, {', '.join(_ADDED)})")


async def add(tx: Tx, key: bytes, token: PersonalToken) -> None:
    """Add a token, without its limits."""
    values = asdict(token)
    await tx.exec(_ADD, {name: values[name] for name in _ADDED} | {"key": key, "role": token.role.value})


async def of_user(tx: Tx, user_id: str, before: str, limit: int) -> Sequence[PersonalToken]:
    """Tokens of a user, newest first; `before` is the id of the last token shown."""
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM access_tokens t WHERE t.user_id = :user_id AND t.id < :before
        ORDER BY t.id DESC LIMIT :limit
        """,
        {"user_id": user_id, "before": before, "limit": limit},
    )
    return [PersonalToken.of(tuple(row)) for row in rows]


async def count(tx: Tx | Database, user_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM access_tokens WHERE user_id = :user_id", {"user_id": user_id})
    return int(row["n"]) if row else 0


async def by_id(tx: Tx, user_id: str, token_id: str) -> PersonalToken | None:
    row = await tx.one(
        f"SELECT {COLUMNS} FROM access_tokens t WHERE t.id = :id AND t.user_id = :user_id",
        {"id": token_id, "user_id": user_id},
    )
    return PersonalToken.of(tuple(row)) if row else None


async def rename(tx: Tx, user_id: str, token_id: str, name: str) -> None:
    sql = "UPDATE access_tokens SET name = :name WHERE id = :id AND user_id = :user_id"
    await tx.exec(sql, {"id": token_id, "user_id": user_id, "name": name})


async def replace_key(tx: Tx, key: bytes, token: PersonalToken) -> None:
    """Replace the key of a token, so that its old text stops working, and restart its lifetime."""
    await tx.exec(
        """
        UPDATE access_tokens SET key = :key, last_four = :last_four, created_at = :created_at, last_used_at = NULL,
            last_used_ip = NULL, expires_at = :expires_at, expired = 0, expiry_notified_at = NULL
        WHERE id = :id AND user_id = :user_id
        """,
        {
            "id": token.id,
            "user_id": token.user_id,
            "key": key,
            "last_four": token.last_four,
            "created_at": token.created_at,
            "expires_at": token.expires_at,
        },
    )


async def remove(tx: Tx, user_id: str, token_id: str) -> bool:
    sql = "DELETE FROM access_tokens WHERE id = :id AND user_id = :user_id"
    return await tx.exec(sql, {"id": token_id, "user_id": user_id}) == 1


async def remove_all(tx: Tx, user_id: str) -> int:
    """Delete all tokens of a user; returns how many."""
    return await tx.exec("DELETE FROM access_tokens WHERE user_id = :user_id", {"user_id": user_id})


_BATCH = 100
_KNOWN = f"SELECT key FROM access_tokens WHERE key IN ({', '.join(f':k{n}' for n in range(_BATCH))})"


async def existing_keys(tx: Tx, keys: Sequence[bytes]) -> list[bytes]:
    """The keys that belong to existing tokens."""
    found: list[bytes] = []
    for start in range(0, len(keys), _BATCH):
        part = keys[start : start + _BATCH]
        # Padded, so that the statement is always the same.
        rows = await tx.all(_KNOWN, {f"k{n}": part[min(n, len(part) - 1)] for n in range(_BATCH)})
        found += [bytes(row["key"]) for row in rows]
    return found


async def remove_by_key(tx: Tx, key: bytes) -> tuple[str, str] | None:
    """Delete a token; returns its name and its user's id, or None if it does not exist."""
    row = await tx.one("DELETE FROM access_tokens WHERE key = :key RETURNING name, user_id", {"key": key})
    return (row["name"], row["user_id"]) if row else None


async def record_use(tx: Tx, token_id: str, now: int, ip: str) -> None:
    await tx.exec(
        "UPDATE access_tokens SET last_used_at = :now, last_used_ip = :ip WHERE id = :id",
        {"id": token_id, "now": now, "ip": ip},
    )
