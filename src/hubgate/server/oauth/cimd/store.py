"""Statements on kept metadata documents."""

from hubgate.server.storage.database import Database, Tx


async def find(db: Database, client_id: str, now: int) -> str | None:
    sql = "SELECT document FROM cimd_documents WHERE client_id = :client_id AND expires_at > :now"
    row = await db.one(sql, {"client_id": client_id, "now": now})
    return row["document"] if row else None


async def save(tx: Tx, client_id: str, document: str, now: int, expires_at: int) -> None:
    await tx.exec(
        """
        INSERT INTO cimd_documents (client_id, document, fetched_at, expires_at)
        VALUES (:client_id, :document, :now, :expires_at)
        ON CONFLICT (client_id) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at,
            expires_at = excluded.expires_at
        """,
        {"client_id": client_id, "document": document, "now": now, "expires_at": expires_at},
    )


async def drop_expired(tx: Tx, now: int, most: int) -> int:
    return await tx.exec(
        """
        DELETE FROM cimd_documents WHERE client_id IN
            (SELECT client_id FROM cimd_documents WHERE expires_at <= :now ORDER BY expires_at LIMIT :most)
        """,
        {"now": now, "most": most},
    )
