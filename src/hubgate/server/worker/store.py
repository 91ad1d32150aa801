"""SQL statements for the leases of background loops."""

from hubgate.server.clock import MINUTE
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params, insert_row

MAX_CLOCK_SKEW = MINUTE

_ACQUIRE = insert_row(
    "INSERT INTO leases (name, holder, expires_at)",
    """
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE leases.holder = excluded.holder OR leases.expires_at <= :now OR leases.expires_at > :too_far
    RETURNING name
    """,
)


async def acquire(tx: Tx, name: str, holder: str, now: int, expires_at: int) -> bool:
    """Acquire or renew a lease; False while another holder's lease is valid.

    A lease that expires too far in the future was acquired before a clock was set back, and may be taken over.
    """
    too_far = expires_at + max(expires_at - now, MAX_CLOCK_SKEW)
    lease: Params = {"name": name, "holder": holder, "expires_at": expires_at}
    return await tx.one(_ACQUIRE, {**lease, "now": now, "too_far": too_far}) is not None


async def release(tx: Tx, name: str, holder: str) -> None:
    await tx.exec("DELETE FROM leases WHERE name = :name AND holder = :holder", {"name": name, "holder": holder})
