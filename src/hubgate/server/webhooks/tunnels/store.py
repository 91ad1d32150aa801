"""Statements on tunnels and the requests that are forwarded through them."""

from collections.abc import Sequence

from msgspec.structs import asdict

from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of, insert_row
from hubgate.server.webhooks.tunnels.model import Tunnel

_COLUMNS = "id, user_id, opened_by, created_at, expires_at"
_ADD = insert_row(f"INSERT INTO tunnels ({_COLUMNS})")


async def add(tx: Tx, tunnel: Tunnel) -> None:
    await tx.exec(_ADD, asdict(tunnel))


async def find(db: Database | Tx, tunnel_id: str, now: int) -> Tunnel | None:
    sql = f"SELECT {_COLUMNS} FROM tunnels WHERE id = :id AND expires_at > :now"
    row = await db.one(sql, {"id": tunnel_id, "now": now})
    return Tunnel(*row) if row else None


async def lock(tx: Tx, tunnel_id: str, now: int) -> bool:
    """Lock a tunnel until the end of the transaction; False if it does not exist or has expired."""
    sql = "SELECT 1 FROM tunnels WHERE id = :id AND expires_at > :now /*pg FOR NO KEY UPDATE */"
    return await tx.one(sql, {"id": tunnel_id, "now": now}) is not None


async def remove(tx: Tx, tunnel_id: str) -> bool:
    return await tx.exec("DELETE FROM tunnels WHERE id = :id", {"id": tunnel_id}) == 1


async def remove_oldest(tx: Tx, user_id: str, beyond: int, *, of_apps: bool) -> None:
    """Delete the oldest tunnels that the user, or all apps of the user, opened, except for the `beyond` newest ones."""
    sql = """
    DELETE FROM tunnels WHERE id IN (
        SELECT id FROM tunnels WHERE user_id = :user_id AND CASE WHEN opened_by IS NULL THEN 0 ELSE 1 END = :of_apps
        ORDER BY created_at DESC, id LIMIT 1000 OFFSET :beyond
    )
    """
    await tx.exec(sql, {"user_id": user_id, "of_apps": int(of_apps), "beyond": beyond})


async def attach(tx: Tx, tunnel_id: str, process: str, now: int) -> bool:
    """Make this process the one that sends the tunnel's requests; False if the tunnel has expired."""
    sql = "UPDATE tunnels SET process = :process WHERE id = :id AND expires_at > :now"
    return await tx.exec(sql, {"id": tunnel_id, "process": process, "now": now}) == 1


async def detach(tx: Tx, tunnel_id: str, process: str) -> None:
    sql = "UPDATE tunnels SET process = NULL WHERE id = :id AND process = :process"
    await tx.exec(sql, {"id": tunnel_id, "process": process})


async def attached(db: Database, process: str, now: int) -> set[str]:
    """The ids of the tunnels whose requests this process sends."""
    sql = "SELECT id FROM tunnels WHERE process = :process AND expires_at > :now"
    return {row["id"] for row in await db.few(sql, {"process": process, "now": now})}


async def count_requests(tx: Tx, tunnel_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM tunnel_requests WHERE tunnel_id = :id", {"id": tunnel_id})
    return int(row["n"]) if row else 0


_ADD_REQUEST = insert_row("INSERT INTO tunnel_requests (id, tunnel_id, waiting_process, request, expires_at)")


async def add_request(tx: Tx, request_id: str, tunnel_id: str, process: str, sealed: bytes, expires_at: int) -> None:
    values = {"id": request_id, "tunnel_id": tunnel_id, "waiting_process": process}
    await tx.exec(_ADD_REQUEST, {**values, "request": sealed, "expires_at": expires_at})


_UNSENT = """
    SELECT r.id FROM tunnels t JOIN tunnel_requests r ON r.tunnel_id = t.id
    WHERE t.process = :process AND r.sent_at IS NULL ORDER BY r.id LIMIT :limit
"""


async def unsent(db: Database, process: str, limit: int) -> list[str]:
    """Requests that this process has to send, the oldest first."""
    return [row["id"] for row in await db.few(_UNSENT, {"process": process, "limit": limit})]


_TAKE = RowStatement(
    """
    UPDATE tunnel_requests SET sent_at = :now /*pg FROM batch */
    WHERE tunnel_requests.id = :id AND sent_at IS NULL
      AND EXISTS (SELECT 1 FROM tunnels t WHERE t.id = tunnel_requests.tunnel_id AND t.process = :process)
    RETURNING tunnel_requests.id, tunnel_id, request
    """,
    columns_of(text="id"),
)


async def take(tx: Tx, request_ids: Sequence[str], process: str, now: int) -> Sequence[Row]:
    """Mark requests as sent, which only one process can do for each: rows with id, tunnel_id and request."""
    return await tx.each(_TAKE, [{"id": request_id} for request_id in request_ids], {"process": process, "now": now})


async def put_answer(tx: Tx, tunnel_id: str, request_id: str, sealed: bytes) -> bool:
    sql = """
    UPDATE tunnel_requests SET answer = :answer
    WHERE id = :id AND tunnel_id = :tunnel_id AND sent_at IS NOT NULL AND answer IS NULL
    """
    return await tx.exec(sql, {"id": request_id, "tunnel_id": tunnel_id, "answer": sealed}) == 1


async def has_answers(db: Database, process: str) -> bool:
    sql = "SELECT 1 FROM tunnel_requests WHERE waiting_process = :process AND answer IS NOT NULL LIMIT 1"
    return await db.one(sql, {"process": process}) is not None


async def take_answers(tx: Tx, process: str) -> Sequence[Row]:
    """Delete the answered requests of this process: rows with id and answer."""
    sql = """
    DELETE FROM tunnel_requests WHERE waiting_process = :process AND answer IS NOT NULL RETURNING id, answer
    """
    return await tx.all(sql, {"process": process})


async def remove_request(tx: Tx, request_id: str) -> None:
    await tx.exec("DELETE FROM tunnel_requests WHERE id = :id", {"id": request_id})


async def drop_expired(tx: Tx, now: int, limit: int) -> int:
    sql = "DELETE FROM {0} WHERE id IN (SELECT id FROM {0} WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)"
    values = {"now": now, "limit": limit}
    requests = await tx.exec(sql.format("tunnel_requests"), values)
    return max(requests, await tx.exec(sql.format("tunnels"), values))
