"""Statements on tunnels."""

from msgspec.structs import asdict

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row
from hubgate.server.webhooks.tunnels.model import Tunnel
from hubgate.server.webhooks.tunnels.requests_store import TUNNEL_REQUESTS

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


async def drop_expired(tx: Tx, now: int, limit: int) -> int:
    sql = """
    DELETE FROM tunnels WHERE id IN (SELECT id FROM tunnels WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
    """
    requests = await TUNNEL_REQUESTS.drop_expired(tx, now, limit)
    return max(requests, await tx.exec(sql, {"now": now, "limit": limit}))
