"""SQL statements for the links between repos and large files."""

from collections.abc import Iterator, Sequence

from hubgate.server.hub.guests import store as guest_store
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_LINK = insert_row(
    "INSERT INTO lfs_links (repo_id, oid, size, blob_sha, created_at, guest)",
    "ON CONFLICT (repo_id, oid) DO UPDATE SET blob_sha = COALESCE(lfs_links.blob_sha, excluded.blob_sha)",
)


async def link(
    tx: Tx, repo_id: str, oid: str, size: int, blob_sha: str | None, now: int, *, by_guest: bool = False
) -> None:
    """Link a file to a repo. A file that a writer uploaded belongs to the owner, even if guests upload it too."""
    file: Params = {"repo_id": repo_id, "oid": oid, "size": size, "blob_sha": blob_sha}
    await tx.exec(_LINK, {**file, "created_at": now, "guest": int(by_guest)})
    if not by_guest:
        await guest_store.assign_to_owner(tx, repo_id, [oid])


async def size_of(tx: Tx | Database, repo_id: str, oid: str) -> int | None:
    """The size of a file; None if it was never uploaded to the repo."""
    row = await tx.one(
        "SELECT size FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return int(row["size"]) if row else None


async def sizes_of(tx: Tx, repo_id: str, oids: Sequence[str]) -> dict[str, int]:
    """The sizes of those files that were uploaded to the repo."""
    found: dict[str, int] = {}
    for params in _in_batches(oids):
        rows = await tx.all(_SIZES, {"repo_id": repo_id, **params})
        found |= {row["oid"]: int(row["size"]) for row in rows}
    return found


async def linked_among(tx: Tx, oids: Sequence[str]) -> set[str]:
    """Those files that any repo links to and that are stored as one object there."""
    found: set[str] = set()
    for params in _in_batches(oids):
        found |= {row["oid"] for row in await tx.all(_LINKED, params)}
    return found


_BATCH = 100
_PLACEHOLDERS = ", ".join(f":oid_{number}" for number in range(_BATCH))
_SIZES = f"SELECT oid, size FROM lfs_links WHERE repo_id = :repo_id AND oid IN ({_PLACEHOLDERS})"
_LINKED = f"""
    SELECT DISTINCT l.oid FROM lfs_links l WHERE l.oid IN ({_PLACEHOLDERS})
    AND NOT EXISTS (SELECT 1 FROM xet_files f WHERE f.repo_id = l.repo_id AND f.oid = l.oid)
"""


def _in_batches(oids: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield parameters in batches of constant size, so that engines reuse the prepared statement. Padding is "", which
    is never a file's id.
    """
    for start in range(0, len(oids), _BATCH):
        batch = oids[start : start + _BATCH]
        yield {f"oid_{number}": batch[number] if number < len(batch) else "" for number in range(_BATCH)}


async def blob_sha_of(tx: Tx | Database, repo_id: str, oid: str) -> str | None:
    row = await tx.one(
        "SELECT blob_sha FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return row["blob_sha"] if row else None


async def used_storage(tx: Tx | Database, repo_id: str) -> int:
    """The bytes of a repo's large files, without files that only guests uploaded, which are charged to the guests."""
    row = await tx.one(
        "SELECT COALESCE(SUM(size), 0) AS n FROM lfs_links WHERE repo_id = :id AND guest = 0", {"id": repo_id}
    )
    return int(row["n"]) if row else 0


async def used_storage_of(tx: Tx, repo_ids: Sequence[str]) -> dict[str, int]:
    """The bytes of large files of each repo; repos without large files are omitted."""
    if not repo_ids:
        return {}
    params = {f"id_{number}": repo_id for number, repo_id in enumerate(repo_ids)}
    names = ", ".join(f":{name}" for name in params)
    rows = await tx.all(
        f"SELECT repo_id, SUM(size) AS n FROM lfs_links WHERE repo_id IN ({names}) AND guest = 0 GROUP BY repo_id",
        params,
    )
    return {row["repo_id"]: int(row["n"]) for row in rows}
