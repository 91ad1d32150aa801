"""SQL statements for self-registered apps and for the operator's initial access tokens."""

from msgspec.structs import asdict

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.apps.store import APP_COLUMNS, app_of
from hubgate.server.oauth.registration.initial_token import InitialToken
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row

_ADD = insert_row("INSERT INTO app_registrations (client_id, key, used_at)")


async def add(tx: Tx, client_id: str, key: bytes, now: int) -> None:
    await tx.exec(_ADD, {"client_id": client_id, "key": key, "used_at": now})


async def find(tx: Tx | Database, client_id: str, key: bytes) -> App | None:
    """The app, if the key is that of its registration access token."""
    row = await tx.one(
        f"""
        SELECT {APP_COLUMNS} FROM app_registrations r JOIN apps a ON a.client_id = r.client_id
        WHERE r.client_id = :client_id AND r.key = :key
        """,
        {"client_id": client_id, "key": key},
    )
    return app_of(row) if row else None


async def used_before(db: Database, client_id: str, time: int) -> bool:
    """Whether the last recorded use was before `time`."""
    sql = "SELECT 1 FROM app_registrations WHERE client_id = :client_id AND used_at < :time"
    return await db.one(sql, {"client_id": client_id, "time": time}) is not None


async def record_use(tx: Tx, client_id: str, now: int) -> None:
    await tx.exec("UPDATE app_registrations SET used_at = :now WHERE client_id = :id", {"id": client_id, "now": now})


async def drop_unused(tx: Tx, used_before: int, limit: int) -> int:
    """Delete apps that were last used before this time; their consents and tokens cascade."""
    return await tx.exec(
        """
        DELETE FROM apps WHERE client_id IN
            (SELECT client_id FROM app_registrations WHERE used_at <= :before ORDER BY used_at LIMIT :limit)
        """,
        {"before": used_before, "limit": limit},
    )


async def count(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS apps FROM app_registrations")
    return row["apps"] if row else 0


async def drop_unapproved(tx: Tx, registered_before: int, limit: int, most_by_user: int) -> int:
    """Delete the oldest apps that no user has approved; users who approved more than `most_by_user` such apps do not
    count. Concurrent calls delete different apps.
    """
    return await tx.exec(
        """
        DELETE FROM apps WHERE client_id IN
            (SELECT r.client_id FROM app_registrations r
             WHERE r.used_at <= :before AND NOT EXISTS
                (SELECT 1 FROM consents c WHERE c.app_id = r.client_id AND c.user_id NOT IN
                    (SELECT many.user_id FROM consents many JOIN app_registrations o ON o.client_id = many.app_id
                     GROUP BY many.user_id HAVING count(*) > :most))
             ORDER BY r.used_at LIMIT :limit /*pg FOR UPDATE OF r SKIP LOCKED */)
        """,
        {"before": registered_before, "limit": limit, "most": most_by_user},
    )


_INITIAL_COLUMNS = "id, last_four, created_at, last_used_at, registrations"
_ADD_TOKEN = insert_row(f"INSERT INTO registration_tokens (key, {_INITIAL_COLUMNS})")


async def add_token(tx: Tx, key: bytes, token: InitialToken) -> None:
    await tx.exec(_ADD_TOKEN, asdict(token) | {"key": key})


async def tokens(tx: Tx) -> list[InitialToken]:
    rows = await tx.all(f"SELECT {_INITIAL_COLUMNS} FROM registration_tokens ORDER BY id", {})
    return [InitialToken(*row) for row in rows]


async def use_token(tx: Tx, key: bytes, now: int) -> bool:
    """Count a registration; False if the token does not exist."""
    sql = "UPDATE registration_tokens SET last_used_at = :now, registrations = registrations + 1 WHERE key = :key"
    return await tx.exec(sql, {"key": key, "now": now}) == 1


async def remove_token(tx: Tx, token_id: str) -> bool:
    return await tx.exec("DELETE FROM registration_tokens WHERE id = :id", {"id": token_id}) == 1
