"""SQL statements for rejected requests."""

import msgspec
from msgspec.structs import asdict

from hubgate.server.oauth.explain.model import Refusal, SentParameters
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import insert_row

COLUMNS = "id, client_id, created_at, endpoint, error, description, sent"
_ADD = insert_row(f"INSERT INTO app_errors ({COLUMNS})", "ON CONFLICT DO NOTHING")


async def has_owner(db: Database, client_id: str) -> bool:
    """Whether the app is registered, by someone who can read about its rejected requests."""
    sql = "SELECT 1 FROM apps WHERE client_id = :client_id AND self_registered = 0"
    return await db.one(sql, {"client_id": client_id}) is not None


async def add(tx: Tx, refusal: Refusal, limit: int) -> None:
    """Add a rejected request and delete all but the app's newest `limit`. An existing id is not overwritten."""
    await tx.exec(_ADD, asdict(refusal) | {"sent": msgspec.json.encode(refusal.sent).decode()})
    await tx.exec(
        """
        DELETE FROM app_errors WHERE client_id = :client_id AND id NOT IN
            (SELECT id FROM app_errors WHERE client_id = :client_id ORDER BY created_at DESC, id DESC LIMIT :limit)
        """,
        {"client_id": refusal.client_id, "limit": limit},
    )


async def find(db: Database, refusal_id: str, since: int) -> Refusal | None:
    sql = f"SELECT {COLUMNS} FROM app_errors WHERE id = :id AND created_at > :since"
    row = await db.one(sql, {"id": refusal_id, "since": since})
    return _refusal(row) if row else None


async def of_app(tx: Tx, client_id: str, since: int, limit: int) -> list[Refusal]:
    """The rejected requests of an app, newest first."""
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM app_errors WHERE client_id = :client_id AND created_at > :since
        ORDER BY created_at DESC, id DESC LIMIT :limit
        """,
        {"client_id": client_id, "since": since, "limit": limit},
    )
    return [_refusal(row) for row in rows]


async def drop_expired(tx: Tx, before: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM app_errors WHERE id IN
            (SELECT id FROM app_errors WHERE created_at <= :before ORDER BY created_at LIMIT :limit)
        """,
        {"before": before, "limit": limit},
    )


def _refusal(row: Row) -> Refusal:
    refusal_id, client_id, created_at, endpoint, error, description, sent = row
    return Refusal(
        refusal_id, client_id, created_at, endpoint, error, description, msgspec.json.decode(sent, type=SentParameters)
    )
