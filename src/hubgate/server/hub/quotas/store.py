"""SQL statements for storage quotas."""

from collections.abc import Collection

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of, insert_row

_TABLES = {"user": "user_quotas", "org": "org_quotas"}
_SET = {
    kind: insert_row(
        f"INSERT INTO {table} (owner_id, bytes)", "ON CONFLICT (owner_id) DO UPDATE SET bytes = excluded.bytes"
    )
    for kind, table in _TABLES.items()
}
_FIND = {kind: f"SELECT bytes FROM {table} WHERE owner_id = :owner_id" for kind, table in _TABLES.items()}
_DROP = {kind: f"DELETE FROM {table} WHERE owner_id = :owner_id" for kind, table in _TABLES.items()}


async def exception(tx: Tx | Database, kind: str, owner_id: str) -> int | None:
    """The quota that an operator set for an owner; None if the default applies."""
    row = await tx.one(_FIND[kind], {"owner_id": owner_id})
    return int(row["bytes"]) if row else None


async def set_exception(tx: Tx, kind: str, owner_id: str, size: int) -> None:
    await tx.exec(_SET[kind], {"owner_id": owner_id, "bytes": size})
    # Without a limit, nothing was added to it.
    await forget_used(tx, owner_id)


async def drop_exception(tx: Tx, kind: str, owner_id: str) -> None:
    await tx.exec(_DROP[kind], {"owner_id": owner_id})
    await forget_used(tx, owner_id)


# Files that are stored as one object, and xorbs that files refer to or that were sent and are not in use yet.
_FILES_OF_OWNER = """
    SELECT l.oid, l.size FROM repos r JOIN lfs_links l ON l.repo_id = r.id
    WHERE r.owner_id = :owner_id AND l.guest = 0
    AND NOT EXISTS (SELECT 1 FROM xet_files f WHERE f.repo_id = l.repo_id AND f.oid = l.oid)
"""
_XORBS_OF_OWNER = """
    SELECT p.xorb FROM repos r JOIN xet_file_xorbs p ON p.repo_id = r.id
    JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid
    WHERE r.owner_id = :owner_id AND l.guest = 0
    UNION
    SELECT u.xorb FROM repos r JOIN xorb_uploads u ON u.repo_id = r.id WHERE r.owner_id = :owner_id AND u.guest = 0
"""
_USED = f"""
    SELECT CAST(COALESCE(SUM(counted.size), 0) AS bigint) AS n FROM (
        SELECT MAX(whole.size) AS size FROM ({_FILES_OF_OWNER}) whole GROUP BY whole.oid
        UNION ALL
        SELECT x.size FROM xorbs x JOIN ({_XORBS_OF_OWNER}) chunked ON chunked.xorb = x.id
    ) counted
"""


async def count_used(tx: Tx, owner_id: str) -> int:
    """Count the bytes that an owner uses: the time grows with their number of files and xorbs."""
    row = await tx.one(_USED, {"owner_id": owner_id})
    return int(row["n"]) if row else 0


# The stored figure.


async def used_since(tx: Tx | Database, owner_id: str, since: int) -> int | None:
    """The stored figure, if the bytes were counted after `since`."""
    sql = "SELECT bytes FROM storage_used WHERE owner_id = :owner_id AND counted_at > :since"
    row = await tx.one(sql, {"owner_id": owner_id, "since": since})
    return int(row["bytes"]) if row else None


_SET_USED = insert_row(
    "INSERT INTO storage_used (owner_id, bytes, counted_at)",
    "ON CONFLICT (owner_id) DO UPDATE SET bytes = excluded.bytes, counted_at = excluded.counted_at",
)


async def set_used(tx: Tx, owner_id: str, size: int, now: int) -> None:
    await tx.exec(_SET_USED, {"owner_id": owner_id, "bytes": size, "counted_at": now})


async def add_used(tx: Tx, owner_id: str, size: int) -> None:
    sql = "UPDATE storage_used SET bytes = bytes + :size WHERE owner_id = :owner_id"
    await tx.exec(sql, {"owner_id": owner_id, "size": size})


async def forget_used(tx: Tx, owner_id: str) -> None:
    """Have the bytes counted at the next upload."""
    await tx.exec("DELETE FROM storage_used WHERE owner_id = :owner_id", {"owner_id": owner_id})


# What an upload adds. Each of these statements reads the rows of a few files or xorbs by their ids.

_COUNTED_FILE = """
    SELECT 1 FROM lfs_links o JOIN repos r ON r.id = o.repo_id
    WHERE o.oid = :oid AND o.guest = 0 AND r.owner_id = :owner_id
    AND NOT EXISTS (SELECT 1 FROM xet_files f WHERE f.repo_id = o.repo_id AND f.oid = o.oid)
"""


_COUNTED_XORB = """
    EXISTS (
        SELECT 1 FROM xorb_uploads u JOIN repos r ON r.id = u.repo_id
        WHERE u.xorb = x.id AND u.guest = 0 AND r.owner_id = :owner_id
    )
    OR EXISTS (
        SELECT 1 FROM xet_file_xorbs p JOIN repos r ON r.id = p.repo_id
        JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid
        WHERE p.xorb = x.id AND l.guest = 0 AND r.owner_id = :owner_id
    )
"""


async def has_file(tx: Tx, owner_id: str, oid: str) -> bool:
    """Whether a file stored as one object already counts for an owner."""
    return await tx.one(_COUNTED_FILE, {"owner_id": owner_id, "oid": oid}) is not None


async def size_of_guests_files(tx: Tx, owner_id: str, repo_id: str, oids: Collection[str]) -> int:
    """The bytes of those files that only guests uploaded to a repo of the owner and that are stored as one object."""
    rows = await tx.each(_GUESTS_FILE, _files(repo_id, oids), {"owner_id": owner_id})
    return sum(int(row["size"]) for row in rows)


_FILE = columns_of(text="repo_id oid")
_GUESTS_FILE = RowStatement(
    f"""
    SELECT l.size FROM lfs_links l WHERE l.repo_id = :repo_id AND l.oid = :oid AND l.guest = 1
    AND NOT EXISTS (SELECT 1 FROM xet_files f WHERE f.repo_id = l.repo_id AND f.oid = l.oid)
    AND NOT EXISTS ({_COUNTED_FILE})
    """,
    _FILE,
)


async def xorbs_of_guests_files(tx: Tx, repo_id: str, oids: Collection[str]) -> set[str]:
    """The xorbs of those files that only guests uploaded."""
    rows = await tx.each(_GUESTS_XORB, _files(repo_id, oids))
    return {row["xorb"] for row in rows}


_GUESTS_XORB = RowStatement(
    """
    SELECT p.xorb FROM lfs_links l JOIN xet_file_xorbs p ON p.repo_id = l.repo_id AND p.oid = l.oid
    WHERE l.repo_id = :repo_id AND l.oid = :oid AND l.guest = 1
    """,
    _FILE,
)


def _files(repo_id: str, oids: Collection[str]) -> list[Params]:
    return [{"repo_id": repo_id, "oid": oid} for oid in oids]


async def has_xorb(tx: Tx, owner_id: str, xorb: str) -> bool:
    """Whether a xorb already counts for an owner."""
    return await tx.one(_HAS_XORB, {"owner_id": owner_id, "xorb": xorb}) is not None


_HAS_XORB = f"SELECT 1 FROM xorbs x WHERE x.id = :xorb AND ({_COUNTED_XORB})"


async def size_of_new_xorbs(tx: Tx, owner_id: str, xorbs: Collection[str]) -> int:
    """The bytes of those xorbs that do not count for an owner yet."""
    rows = await tx.each(_NEW_XORB, [{"xorb": xorb} for xorb in xorbs], {"owner_id": owner_id})
    return sum(int(row["size"]) for row in rows)


_NEW_XORB = RowStatement(
    f"SELECT x.size FROM xorbs x WHERE x.id = :xorb AND NOT ({_COUNTED_XORB})", columns_of(text="xorb")
)
