"""SQL statements on sessions."""

from collections.abc import Sequence

from msgspec.structs import asdict

from hubgate.server.accounts.model import Person, person_of
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.accounts.store import MEMBERSHIPS, PERSON
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row

COLUMNS = "s.id, s.user_id, s.created_at, s.last_used_at, s.ip, s.user_agent"
_WIDTH = 6

_BY_KEY = f"""
    SELECT {PERSON}, {COLUMNS} FROM sessions s JOIN users u ON u.id = s.user_id {MEMBERSHIPS}
    WHERE s.key = :key AND s.last_used_at > :used_after AND u.disabled_at IS NULL
"""


async def find(db: Database, key: bytes, used_after: int) -> tuple[Person, Session] | None:
    rows = await db.few(_BY_KEY, {"key": key, "used_after": used_after})
    if not rows:
        return None
    return person_of(rows), Session(*tuple(rows[0])[-_WIDTH:])


_ADD = insert_row("INSERT INTO sessions (key, id, user_id, created_at, last_used_at, ip, user_agent)")


async def add(tx: Tx, key: bytes, session: Session) -> None:
    await tx.exec(_ADD, asdict(session) | {"key": key})


async def of_user(tx: Tx, user_id: str, used_after: int) -> Sequence[Session]:
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM sessions s WHERE s.user_id = :user_id AND s.last_used_at > :used_after
        ORDER BY s.last_used_at DESC, s.id DESC
        """,
        {"user_id": user_id, "used_after": used_after},
    )
    return [Session(*row) for row in rows]


async def page_of_user(tx: Tx, user_id: str, used_after: int, before: str, limit: int) -> Sequence[Session]:
    """Sessions by age, which is stable while a user pages; `before` is the id of the last session shown."""
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM sessions s
        WHERE s.user_id = :user_id AND s.last_used_at > :used_after AND s.id < :before
        ORDER BY s.id DESC LIMIT :limit
        """,
        {"user_id": user_id, "used_after": used_after, "before": before, "limit": limit},
    )
    return [Session(*row) for row in rows]


async def record_use(tx: Tx, session_id: str, now: int, ip: str) -> None:
    await tx.exec(
        "UPDATE sessions SET last_used_at = :now, ip = :ip WHERE id = :id", {"id": session_id, "now": now, "ip": ip}
    )


async def remove(tx: Tx, user_id: str, session_id: str) -> bool:
    sql = "DELETE FROM sessions WHERE id = :id AND user_id = :user_id"
    return await tx.exec(sql, {"id": session_id, "user_id": user_id}) == 1


async def remove_others(tx: Tx, user_id: str, current_id: str) -> int:
    sql = "DELETE FROM sessions WHERE user_id = :user_id AND id <> :current_id"
    return await tx.exec(sql, {"user_id": user_id, "current_id": current_id})


async def count_others(tx: Tx, user_id: str, used_after: int, current_id: str) -> int:
    sql = """
        SELECT count(*) AS n FROM sessions WHERE user_id = :user_id AND last_used_at > :used_after AND id <> :current_id
    """
    row = await tx.one(sql, {"user_id": user_id, "used_after": used_after, "current_id": current_id})
    return int(row["n"]) if row else 0


async def lock(tx: Tx, user_id: str, session_id: str) -> bool:
    """Lock a session until the end of the transaction; False if it has ended."""
    sql = "UPDATE sessions SET last_used_at = last_used_at WHERE id = :id AND user_id = :user_id"
    return await tx.exec(sql, {"id": session_id, "user_id": user_id}) == 1


async def remove_all(tx: Tx, user_id: str) -> None:
    await tx.exec("DELETE FROM sessions WHERE user_id = :user_id", {"user_id": user_id})


async def remove_least_recent(tx: Tx, user_id: str, limit: int) -> None:
    """Delete all sessions of a user except the `limit` most recently used."""
    await tx.exec(
        """
        DELETE FROM sessions WHERE key IN (
            SELECT key FROM sessions WHERE user_id = :user_id
            ORDER BY last_used_at DESC, id DESC LIMIT 1000 OFFSET :limit
        )
        """,
        {"user_id": user_id, "limit": limit},
    )


async def drop_expired(tx: Tx, used_after: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM sessions WHERE key IN
            (SELECT key FROM sessions WHERE last_used_at <= :used_after ORDER BY last_used_at LIMIT :limit)
        """,
        {"used_after": used_after, "limit": limit},
    )
