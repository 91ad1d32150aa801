"""Statements on which repos may use which large files."""

from collections.abc import Sequence

from hubgate.server.storage.database import Database, Tx


async def link(tx: Tx, repo_id: str, oid: str, size: int, blob_sha: str | None, now: int) -> None:
    await tx.exec(
        """
        INSERT INTO lfs_links (repo_id, oid, size, blob_sha, created_at)
        VALUES (:repo_id, :oid, :size, :blob_sha, :now)
        ON CONFLICT (repo_id, oid) DO UPDATE SET blob_sha = COALESCE(lfs_links.blob_sha, excluded.blob_sha)
        """,
        {"repo_id": repo_id, "oid": oid, "size": size, "blob_sha": blob_sha, "now": now},
    )


async def size_of(tx: Tx | Database, repo_id: str, oid: str) -> int | None:
    """None if the repo was never sent this file."""
    row = await tx.one(
        "SELECT size FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return int(row["size"]) if row else None


async def blob_sha_of(tx: Tx | Database, repo_id: str, oid: str) -> str | None:
    row = await tx.one(
        "SELECT blob_sha FROM lfs_links WHERE repo_id = :repo_id AND oid = :oid", {"repo_id": repo_id, "oid": oid}
    )
    return row["blob_sha"] if row else None


async def copy_links(tx: Tx, from_repo: str, to_repo: str, oids: Sequence[str], now: int) -> None:
    for oid in oids:
        await tx.exec(
            """
            INSERT INTO lfs_links (repo_id, oid, size, blob_sha, created_at)
            SELECT :to_repo, oid, size, blob_sha, :now FROM lfs_links WHERE repo_id = :from_repo AND oid = :oid
            ON CONFLICT (repo_id, oid) DO NOTHING
            """,
            {"to_repo": to_repo, "from_repo": from_repo, "oid": oid, "now": now},
        )


async def used_storage(tx: Tx | Database, repo_id: str) -> int:
    row = await tx.one("SELECT COALESCE(SUM(size), 0) AS n FROM lfs_links WHERE repo_id = :id", {"id": repo_id})
    return int(row["n"]) if row else 0


async def used_storage_of(tx: Tx, repo_ids: Sequence[str]) -> dict[str, int]:
    """Of many repos at once; one without large files is left out."""
    if not repo_ids:
        return {}
    given = {f"id_{number}": repo_id for number, repo_id in enumerate(repo_ids)}
    marks = ", ".join(f":{name}" for name in given)
    rows = await tx.all(
        f"SELECT repo_id, SUM(size) AS n FROM lfs_links WHERE repo_id IN ({marks}) GROUP BY repo_id", given
    )
    return {row["repo_id"]: int(row["n"]) for row in rows}
