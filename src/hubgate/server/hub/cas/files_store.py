"""SQL statements for files that are stored as chunks."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.listing.store import visible_repos_sql
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of, insert_row


class ChunkedFile(Struct, frozen=True):
    """A large file of a repo that is stored as chunks: SHA-256, size, Xet hash, and its terms (`hub/xet/shard.py`)."""

    repo_id: str
    oid: str
    size: int
    hash: str
    terms: bytes


_COLUMNS = "f.repo_id, l.oid, l.size, f.hash, f.terms"
_FROM = "xet_files f JOIN lfs_links l ON l.repo_id = f.repo_id AND l.oid = f.oid"


async def find_link(tx: Tx | Database, repo_id: str, oid: str) -> tuple[int, ChunkedFile | None] | None:
    """The size of a file that was uploaded to the repo, and the file if it is stored as chunks; None without one."""
    row = await tx.one(
        """
        SELECT l.size, f.hash, f.terms FROM lfs_links l
        LEFT JOIN xet_files f ON f.repo_id = l.repo_id AND f.oid = l.oid
        WHERE l.repo_id = :repo_id AND l.oid = :oid
        """,
        {"repo_id": repo_id, "oid": oid},
    )
    if row is None:
        return None
    size, file_hash, terms = row
    if file_hash is None:
        return int(size), None
    return int(size), ChunkedFile(repo_id, oid, int(size), file_hash, bytes(terms))


async def find_by_hash(tx: Tx | Database, repo_id: str, file_hash: str) -> ChunkedFile | None:
    sql = f"SELECT {_COLUMNS} FROM {_FROM} WHERE f.repo_id = :repo_id AND f.hash = :hash"
    row = await tx.one(sql, {"repo_id": repo_id, "hash": file_hash})
    return ChunkedFile(*row) if row else None


async def hashes_of(tx: Tx, repo_id: str, oids: Collection[str]) -> dict[str, str]:
    """The Xet hashes of those files that are stored as chunks."""
    rows = await tx.each(_HASH, [{"repo_id": repo_id, "oid": oid} for oid in oids])
    return {row["oid"]: row["hash"] for row in rows}


_HASH = RowStatement(
    "SELECT f.oid, f.hash FROM xet_files f WHERE f.repo_id = :repo_id AND f.oid = :oid",
    columns_of(text="repo_id oid"),
)


async def repos_with_file(
    tx: Tx, file_hash: str, visible: VisibleRepos, first: str, limit: int
) -> list[tuple[str, Repo]]:
    """Repos that the caller may see and that have the file with this Xet hash, each with the file's SHA-256."""
    values: dict[str, str | int] = {"hash": file_hash, "first": first, "limit": limit}
    rows = await tx.all(
        f"""
        SELECT f.oid, {REPO} FROM xet_files f JOIN repos r ON r.id = f.repo_id {OWNERS}
        JOIN lfs_links l ON l.repo_id = f.repo_id AND l.oid = f.oid
        WHERE f.hash = :hash AND (l.guest = 0 OR l.checked IS NOT NULL) AND {visible_repos_sql(visible, values)}
        ORDER BY CASE WHEN r.id = :first THEN 0 ELSE 1 END, r.gated, r.id LIMIT :limit
        """,
        values,
    )
    return [(row[0], Repo(*list(row)[1:])) for row in rows]


async def refers_to(tx: Tx | Database, repo_id: str, xorb_id: str) -> bool:
    """Whether a file of the repo has chunks of the xorb."""
    sql = "SELECT 1 FROM xet_file_xorbs WHERE repo_id = :repo_id AND xorb = :xorb"
    return await tx.one(sql, {"repo_id": repo_id, "xorb": xorb_id}) is not None


async def is_linked(tx: Tx, repo_id: str, oid: str) -> bool:
    sql = "SELECT 1 FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid"
    return await tx.one(sql, {"repo_id": repo_id, "oid": oid}) is not None


_ADD = insert_row("INSERT INTO xet_files (repo_id, oid, hash, terms, created_at)")


async def add(tx: Tx, file: ChunkedFile, now: int) -> None:
    """Add a file, whose link exists."""
    values: Params = {
        "repo_id": file.repo_id,
        "oid": file.oid,
        "hash": file.hash,
        "terms": file.terms,
        "created_at": now,
    }
    await tx.exec(_ADD, values)


async def refer(tx: Tx, file: ChunkedFile, ranges: Mapping[str, bytes]) -> int:
    """Record that a file has ranges of chunks of xorbs, by their ids; the number of those that are stored. The foreign
    key rejects a xorb that is deleted at the same time, or prevents its deletion.
    """
    rows: Sequence[Params] = [{"xorb": xorb_id, "ranges": packed} for xorb_id, packed in ranges.items()]
    return len(await tx.each(_REFER, rows, {"repo_id": file.repo_id, "oid": file.oid}))


_REFER = RowStatement(
    """
    INSERT INTO xet_file_xorbs (repo_id, oid, xorb, ranges)
    SELECT CAST(:repo_id AS text), CAST(:oid AS text), x.id, :ranges FROM xorbs x /*pg , batch */ WHERE x.id = :xorb
    RETURNING xorb
    """,
    columns_of(text="xorb", bytea="ranges"),
)
