"""Statements on which repos may use which large files."""

from collections.abc import Iterator, Sequence

from hubgate.server.storage.database import Database, Tx


async def link(
    tx: Tx, repo_id: str, oid: str, size: int, blob_sha: str | None, now: int, *, by_guest: bool = False
) -> None:
    """A file that a writer sent stays the owner's, whoever sends it again."""
    await tx.exec(
        """
        INSERT INTO lfs_links (repo_id, oid, size, blob_sha, created_at, guest)
        VALUES (:repo_id, :oid, :size, :blob_sha, :now, :guest)
        ON CONFLICT (repo_id, oid) DO UPDATE SET blob_sha = COALESCE(lfs_links.blob_sha, excluded.blob_sha),
            guest = CASE WHEN excluded.guest = 0 THEN 0 ELSE lfs_links.guest END
        """,
        {"repo_id": repo_id, "oid": oid, "size": size, "blob_sha": blob_sha, "now": now, "guest": int(by_guest)},
    )


async def size_of(tx: Tx | Database, repo_id: str, oid: str) -> int | None:
    """None if the repo was never sent this file."""
    row = await tx.one(
        "SELECT size FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return int(row["size"]) if row else None


async def sizes_of(tx: Tx, repo_id: str, oids: Sequence[str]) -> dict[str, int]:
    """Of those the repo was sent."""
    found: dict[str, int] = {}
    for given in _in_batches(oids):
        rows = await tx.all(_SIZES, {"repo_id": repo_id, **given})
        found |= {row["oid"]: int(row["size"]) for row in rows}
    return found


async def linked_among(tx: Tx, oids: Sequence[str]) -> set[str]:
    """Those that any repo has."""
    found: set[str] = set()
    for given in _in_batches(oids):
        found |= {row["oid"] for row in await tx.all(_LINKED, given)}
    return found


_AT_ONCE = 100
_MARKS = ", ".join(f":oid_{number}" for number in range(_AT_ONCE))
_SIZES = f"SELECT oid, size FROM lfs_links WHERE repo_id = :repo_id AND oid IN ({_MARKS})"
_LINKED = f"SELECT DISTINCT oid FROM lfs_links WHERE oid IN ({_MARKS})"


def _in_batches(oids: Sequence[str]) -> Iterator[dict[str, str]]:
    """Always as many, so that engines know the statement again; no file has an empty name."""
    for start in range(0, len(oids), _AT_ONCE):
        batch = oids[start : start + _AT_ONCE]
        yield {f"oid_{number}": batch[number] if number < len(batch) else "" for number in range(_AT_ONCE)}


async def blob_sha_of(tx: Tx | Database, repo_id: str, oid: str) -> str | None:
    row = await tx.one(
        "SELECT blob_sha FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return row["blob_sha"] if row else None


async def used_storage(tx: Tx | Database, repo_id: str) -> int:
    """Without files that only guests sent: those are charged to the guests."""
    row = await tx.one(
        "SELECT COALESCE(SUM(size), 0) AS n FROM lfs_links WHERE repo_id = :id AND guest = 0", {"id": repo_id}
    )
    return int(row["n"]) if row else 0


async def used_storage_of(tx: Tx, repo_ids: Sequence[str]) -> dict[str, int]:
    """The same for many repos at once; one without large files is left out."""
    if not repo_ids:
        return {}
    given = {f"id_{number}": repo_id for number, repo_id in enumerate(repo_ids)}
    marks = ", ".join(f":{name}" for name in given)
    rows = await tx.all(
        f"SELECT repo_id, SUM(size) AS n FROM lfs_links WHERE repo_id IN ({marks}) AND guest = 0 GROUP BY repo_id",
        given,
    )
    return {row["repo_id"]: int(row["n"]) for row in rows}
