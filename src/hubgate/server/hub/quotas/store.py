"""SQL statements for storage quotas."""

from collections.abc import Collection

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import RowStatement, columns_of, insert_row

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


async def drop_exception(tx: Tx, kind: str, owner_id: str) -> None:
    await tx.exec(_DROP[kind], {"owner_id": owner_id})


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


async def used(tx: Tx, owner_id: str) -> int:
    """The bytes that count towards an owner's quota."""
    row = await tx.one(_USED, {"owner_id": owner_id})
    return int(row["n"]) if row else 0


async def has_file(tx: Tx, owner_id: str, oid: str) -> bool:
    """Whether a file stored as one object already counts for an owner."""
    sql = f"SELECT 1 FROM ({_FILES_OF_OWNER}) whole WHERE whole.oid = :oid"
    return await tx.one(sql, {"owner_id": owner_id, "oid": oid}) is not None


async def has_xorb(tx: Tx, owner_id: str, xorb: str) -> bool:
    """Whether a xorb already counts for an owner."""
    sql = f"SELECT 1 FROM ({_XORBS_OF_OWNER}) chunked WHERE chunked.xorb = :xorb"
    return await tx.one(sql, {"owner_id": owner_id, "xorb": xorb}) is not None


async def size_of_new_xorbs(tx: Tx, owner_id: str, xorbs: Collection[str]) -> int:
    """The bytes of those xorbs that do not count for an owner yet."""
    rows = await tx.each(_NEW_XORB, [{"xorb": xorb} for xorb in xorbs], {"owner_id": owner_id})
    return sum(int(row["size"]) for row in rows)


_NEW_XORB = RowStatement(
    """
    SELECT x.size FROM xorbs x WHERE x.id = :xorb
    AND NOT EXISTS (
        SELECT 1 FROM xorb_uploads u JOIN repos r ON r.id = u.repo_id
        WHERE u.xorb = x.id AND u.guest = 0 AND r.owner_id = :owner_id
    )
    AND NOT EXISTS (
        SELECT 1 FROM xet_file_xorbs p JOIN repos r ON r.id = p.repo_id
        JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid
        WHERE p.xorb = x.id AND l.guest = 0 AND r.owner_id = :owner_id
    )
    """,
    columns_of(text="xorb"),
)
