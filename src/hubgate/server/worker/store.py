"""Statements on leases."""

from hubgate.server.clock import MINUTE
from hubgate.server.storage.database import Tx

CLOCKS_DIFFER = MINUTE


async def acquire(tx: Tx, name: str, holder: str, now: int, expires_at: int) -> bool:
    """Take or renew; False while another holder's lease runs. One that runs for far longer than any does was taken by a
    clock that has been set back since.
    """
    row = await tx.one(
        """
        INSERT INTO leases (name, holder, expires_at) VALUES (:name, :holder, :expires_at)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
        WHERE leases.holder = excluded.holder OR leases.expires_at <= :now OR leases.expires_at > :too_far
        RETURNING name
        """,
        {
            "name": name,
            "holder": holder,
            "now": now,
            "expires_at": expires_at,
            "too_far": expires_at + max(expires_at - now, CLOCKS_DIFFER),
        },
    )
    return row is not None


async def release(tx: Tx, name: str, holder: str) -> None:
    await tx.exec("DELETE FROM leases WHERE name = :name AND holder = :holder", {"name": name, "holder": holder})
