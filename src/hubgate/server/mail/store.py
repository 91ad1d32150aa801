"""SQL statements on the mail outbox."""

from collections.abc import Sequence

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_ADD = insert_row("INSERT INTO mails (id, sealed, attempts, due_at, expires_at)")


async def add(tx: Tx, mail_id: str, sealed: bytes, due_at: int, expires_at: int) -> None:
    values: Params = {"id": mail_id, "sealed": sealed, "attempts": 0, "due_at": due_at, "expires_at": expires_at}
    await tx.exec(_ADD, values)


async def due(tx: Tx, now: int, limit: int) -> Sequence[Row]:
    return await tx.all(
        "SELECT id, sealed, attempts, due_at, expires_at FROM mails WHERE due_at <= :now ORDER BY due_at LIMIT :limit",
        {"now": now, "limit": limit},
    )


async def lease(tx: Tx, mail_id: str, due_at: int, leased_until: int) -> bool:
    """Lease a mail until `leased_until`; False if another sender leased it first."""
    changed = await tx.exec(
        "UPDATE mails SET due_at = :leased_until, attempts = attempts + 1 WHERE id = :id AND due_at = :due_at",
        {"id": mail_id, "due_at": due_at, "leased_until": leased_until},
    )
    return changed == 1


async def postpone(tx: Tx, mail_id: str, leased_until: int, retry_at: int) -> None:
    """Schedule the next attempt, unless the lease expired and another sender took over."""
    await tx.exec(
        "UPDATE mails SET due_at = :retry_at WHERE id = :id AND due_at = :leased_until",
        {"id": mail_id, "leased_until": leased_until, "retry_at": retry_at},
    )


async def remove(tx: Tx, mail_id: str) -> None:
    await tx.exec("DELETE FROM mails WHERE id = :id", {"id": mail_id})


async def count(tx: Tx) -> int:
    rows = await tx.all("SELECT count(*) AS n FROM mails")
    return int(rows[0]["n"])


async def sealed(tx: Tx) -> Sequence[Row]:
    return await tx.all("SELECT id, sealed FROM mails")


async def reseal(tx: Tx, mail_id: str, old: bytes, new: bytes) -> bool:
    sql = "UPDATE mails SET sealed = :new WHERE id = :id AND sealed = :old"
    return await tx.exec(sql, {"id": mail_id, "old": old, "new": new}) == 1
