"""Statements on cached metadata documents."""

from hubgate.server.storage.database import Database, Tx


async def find(db: Database, client_id: str) -> tuple[str, int] | None:
    """The cached document and when it expires."""
    sql = "SELECT document, expires_at FROM cimd_documents WHERE client_id = :client_id AND document <> ''"
    row = await db.one(sql, {"client_id": client_id})
    return (row["document"], row["expires_at"]) if row else None


async def claim(tx: Tx, client_id: str, now: int, until: int) -> bool:
    """Lease the fetch to this process until `until`; False if another process has the lease."""
    row = await tx.one(
        """
        INSERT INTO cimd_documents (client_id, document, fetched_at, expires_at, fetching_until)
        VALUES (:client_id, '', 0, :now, :until)
        ON CONFLICT (client_id) DO UPDATE SET fetching_until = excluded.fetching_until
            WHERE cimd_documents.fetching_until <= :now
        RETURNING client_id
        """,
        {"client_id": client_id, "now": now, "until": until},
    )
    return row is not None


async def release(tx: Tx, client_id: str) -> None:
    await tx.exec("UPDATE cimd_documents SET fetching_until = 0 WHERE client_id = :id", {"id": client_id})


async def save(tx: Tx, client_id: str, document: str, now: int, expires_at: int) -> None:
    await tx.exec(
        """
        INSERT INTO cimd_documents (client_id, document, fetched_at, expires_at, fetching_until)
        VALUES (:client_id, :document, :now, :expires_at, 0)
        ON CONFLICT (client_id) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at,
            expires_at = excluded.expires_at, fetching_until = 0
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
