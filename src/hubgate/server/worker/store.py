"""Statements on leases."""

from hubgate.server.storage.database import Tx


async def acquire(tx: Tx, name: str, holder: str, now: int, expires_at: int) -> bool:
    """Take or renew; False while another holder's lease runs."""
    row = await tx.one(
        """
        INSERT INTO leases (name, holder, expires_at) VALUES (:name, :holder, :expires_at)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
        WHERE leases.holder = excluded.holder OR leases.expires_at <= :now
        RETURNING name
        """,
        {"name": name, "holder": holder, "now": now, "expires_at": expires_at},
    )
    return row is not None


async def release(tx: Tx, name: str, holder: str) -> None:
    await tx.exec("DELETE FROM leases WHERE name = :name AND holder = :holder", {"name": name, "holder": holder})
