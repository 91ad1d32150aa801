"""SQL statements for cached metadata documents, and for scopes granted to their apps."""

from collections.abc import Sequence

from hubgate.server.oauth.cimd.model import GrantedScopes
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row


async def find(db: Database, client_id: str) -> tuple[str, int] | None:
    """The cached document and when it expires."""
    sql = "SELECT document, expires_at FROM cimd_documents WHERE client_id = :client_id AND document <> ''"
    row = await db.one(sql, {"client_id": client_id})
    return (row["document"], row["expires_at"]) if row else None


_COLUMNS = "client_id, document, fetched_at, expires_at, fetching_until"
_CLAIM = insert_row(
    f"INSERT INTO cimd_documents ({_COLUMNS})",
    """
    ON CONFLICT (client_id) DO UPDATE SET fetching_until = excluded.fetching_until
        WHERE cimd_documents.fetching_until <= :now
    RETURNING client_id
    """,
)


async def claim(tx: Tx, client_id: str, now: int, until: int) -> bool:
    """Lease the fetch to this process until `until`; False if another process has the lease."""
    empty: Params = {"document": "", "fetched_at": 0, "expires_at": now}
    return await tx.one(_CLAIM, {"client_id": client_id, "fetching_until": until, "now": now, **empty}) is not None


async def release(tx: Tx, client_id: str) -> None:
    await tx.exec("UPDATE cimd_documents SET fetching_until = 0 WHERE client_id = :id", {"id": client_id})


_SAVE = insert_row(
    f"INSERT INTO cimd_documents ({_COLUMNS})",
    """
    ON CONFLICT (client_id) DO UPDATE SET document = excluded.document, fetched_at = excluded.fetched_at,
        expires_at = excluded.expires_at, fetching_until = 0
    """,
)


async def save(tx: Tx, client_id: str, document: str, now: int, expires_at: int) -> None:
    times: Params = {"fetched_at": now, "expires_at": expires_at, "fetching_until": 0}
    await tx.exec(_SAVE, {"client_id": client_id, "document": document, **times})


async def drop_expired(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM cimd_documents WHERE client_id IN
            (SELECT client_id FROM cimd_documents WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


_ADD_SCOPE = insert_row("INSERT INTO document_scopes (client_id, scope, created_at)", "ON CONFLICT DO NOTHING")


async def add_scope(tx: Tx, client_id: str, scope: str, now: int) -> None:
    """Grant a scope to the app of a document; nothing changes if it was granted before."""
    await tx.exec(_ADD_SCOPE, {"client_id": client_id, "scope": scope, "created_at": now})


async def remove_scope(tx: Tx, client_id: str, scope: str) -> bool:
    sql = "DELETE FROM document_scopes WHERE client_id = :client_id AND scope = :scope"
    return await tx.exec(sql, {"client_id": client_id, "scope": scope}) == 1


async def lock_granted_scopes(tx: Tx, client_id: str) -> tuple[str, ...]:
    """The scopes that were granted to the app, which cannot be revoked until the transaction ends."""
    sql = "SELECT scope FROM document_scopes WHERE client_id = :client_id ORDER BY scope /*pg FOR SHARE */"
    return tuple(row["scope"] for row in await tx.all(sql, {"client_id": client_id}))


async def granted_scopes(tx: Tx, client_id: str) -> GrantedScopes:
    sql = "SELECT client_id, scope, created_at FROM document_scopes WHERE client_id = :client_id ORDER BY scope"
    found = _grouped(await tx.all(sql, {"client_id": client_id}))
    return found[0] if found else GrantedScopes(client_id, (), 0)


async def all_granted_scopes(tx: Tx) -> list[GrantedScopes]:
    sql = "SELECT client_id, scope, created_at FROM document_scopes ORDER BY client_id, scope"
    return _grouped(await tx.all(sql, {}))


def _grouped(rows: Sequence[Row]) -> list[GrantedScopes]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["client_id"], []).append(row)
    return [
        GrantedScopes(client_id, tuple(row["scope"] for row in same), min(row["created_at"] for row in same))
        for client_id, same in found.items()
    ]
