"""SQL statements for xorbs: what is stored, and who sent it."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.listing.store import visible_repos_sql
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of, insert_row


class StoredXorb(Struct, frozen=True):
    """A stored xorb: its hash, the key of its object, and its bytes as stored."""

    hash: str
    object: str
    size: int


class NewXorb(Struct, frozen=True):
    """A verified xorb. `lookups` are the hashes of the chunks that clients look up."""

    hash: str
    object: str
    size: int
    raw_size: int
    chunks: bytes
    lookups: Sequence[bytes]


async def find(tx: Tx | Database, xorb: str) -> StoredXorb | None:
    row = await tx.one("SELECT hash, object, size FROM xorbs WHERE hash = :xorb", {"xorb": xorb})
    return StoredXorb(*row) if row else None


async def chunks_of(tx: Tx | Database, xorb: str) -> bytes | None:
    """The packed table of a xorb's chunks."""
    row = await tx.one("SELECT chunks FROM xorb_chunks WHERE xorb = :xorb", {"xorb": xorb})
    return bytes(row["chunks"]) if row else None


# The update locks the row: a xorb that is being deleted is either gone or stays.
_ADD = insert_row(
    "INSERT INTO xorbs (hash, object, size, raw_size, created_at)",
    "ON CONFLICT (hash) DO UPDATE SET unused_at = NULL RETURNING object",
)


async def add(tx: Tx, new: NewXorb, now: int) -> str:
    """Add a xorb and return the key of its object: another one if the xorb is already stored."""
    row = await tx.one(
        _ADD,
        {
            "hash": new.hash,
            "object": new.object,
            "size": new.size,
            "raw_size": new.raw_size,
            "created_at": now,
        },
    )
    stored: str = row["object"] if row else new.object
    if stored == new.object:
        await tx.exec(
            "INSERT INTO xorb_chunks (xorb, chunks) VALUES (:xorb, :chunks)", {"xorb": new.hash, "chunks": new.chunks}
        )
        await add_lookups(tx, [(chunk, new.hash) for chunk in dict.fromkeys(new.lookups)])
    return stored


async def add_lookups(tx: Tx, lookups: Collection[tuple[bytes, str]]) -> None:
    """List chunks for look-ups, each with a xorb that contains it."""
    await tx.exec_many(_ADD_LOOKUP, [{"chunk": chunk, "xorb": xorb} for chunk, xorb in lookups])


_ADD_LOOKUP = insert_row("INSERT INTO xet_chunks (chunk, xorb)", "ON CONFLICT (chunk, xorb) DO NOTHING")


async def lock(tx: Tx, xorb: str) -> bool:
    """Lock a xorb against deletion until the transaction ends; False if it is not stored."""
    sql = "UPDATE xorbs SET unused_at = NULL WHERE hash = :xorb RETURNING hash"
    return await tx.one(sql, {"xorb": xorb}) is not None


_RECORD = insert_row(
    "INSERT INTO xorb_uploads (repo_id, xorb, user_id, guest, uploaded_at)",
    """
    ON CONFLICT (repo_id, xorb, user_id) DO UPDATE SET
        uploaded_at = excluded.uploaded_at,
        guest = CASE WHEN xorb_uploads.guest < excluded.guest THEN xorb_uploads.guest ELSE excluded.guest END
    """,
)


async def record_upload(tx: Tx, repo_id: str, xorb: str, user_id: str, *, by_guest: bool, now: int) -> None:
    """Record that a user sent a xorb to a repo. An upload by a writer stays one."""
    values: Params = {"repo_id": repo_id, "xorb": xorb, "user_id": user_id, "guest": int(by_guest), "uploaded_at": now}
    await tx.exec(_RECORD, values)


async def sent_among(tx: Tx, repo_id: str, user_id: str, xorbs: Collection[str], *, by_writers: bool) -> set[str]:
    """Those xorbs that the user sent to a repo; with `by_writers`, also those that its writers sent."""
    params: Params = {"repo_id": repo_id, "user_id": user_id, "by_writers": int(by_writers)}
    rows = await tx.each(_SENT, [{"xorb": xorb} for xorb in xorbs], params)
    return {row["xorb"] for row in rows}


_SENT = RowStatement(
    """
    SELECT u.xorb FROM xorb_uploads u WHERE u.repo_id = :repo_id AND u.xorb = :xorb
    AND (u.user_id = :user_id OR (u.guest = 0 AND CAST(:by_writers AS bigint) = 1))
    """,
    columns_of(text="xorb"),
)

# Files that only a guest uploaded count once a pull request uses them: until then others cannot download them.
_SHOWN = "(l.guest = 0 OR l.checked IS NOT NULL)"


async def repos_with(tx: Tx, xorb: str, visible: VisibleRepos, first: str, limit: int) -> list[Repo]:
    """Repos that the caller may see and that have chunks of the xorb in a file: `first`, then those without a gate."""
    values: dict[str, str | int] = {"xorb": xorb, "first": first, "limit": limit}
    rows = await tx.all(
        f"""
        SELECT {REPO} FROM repos r {OWNERS} WHERE r.id IN (
            SELECT p.repo_id FROM xet_file_xorbs p JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid
            WHERE p.xorb = :xorb AND {_SHOWN}
        ) AND {visible_repos_sql(visible, values)}
        ORDER BY CASE WHEN r.id = :first THEN 0 ELSE 1 END, r.gated, r.id LIMIT :limit
        """,
        values,
    )
    return [Repo(*row) for row in rows]


async def xorbs_with_chunk(tx: Tx, chunk: bytes, limit: int) -> list[str]:
    rows = await tx.all(
        "SELECT xorb FROM xet_chunks WHERE chunk = :chunk ORDER BY xorb LIMIT :limit", {"chunk": chunk, "limit": limit}
    )
    return [row["xorb"] for row in rows]


async def xorbs_beside(tx: Tx, repo_id: str, xorb: str, limit: int) -> list[str]:
    """The xorbs of the files in a repo that have chunks of this xorb."""
    rows = await tx.all(
        f"""
        SELECT DISTINCT o.xorb FROM xet_file_xorbs p
        JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid
        JOIN xet_file_xorbs o ON o.repo_id = p.repo_id AND o.oid = p.oid
        WHERE p.repo_id = :repo_id AND p.xorb = :xorb AND {_SHOWN} ORDER BY o.xorb LIMIT :limit
        """,
        {"repo_id": repo_id, "xorb": xorb, "limit": limit},
    )
    return [row["xorb"] for row in rows]
