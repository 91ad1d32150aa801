"""SQL statements for xorbs: what is stored, who sent it, and in which repos its chunks are."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.listing.store import visible_repos_sql
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of, insert_row


class NewXorb(Struct, frozen=True):
    """A verified xorb. `lookups` are the hashes of the chunks that clients look up."""

    stored: StoredXorb
    raw_size: int
    chunks: bytes
    lookups: Sequence[bytes]


async def find(tx: Tx | Database, xorb_id: str) -> StoredXorb | None:
    row = await tx.one("SELECT id, hash, size FROM xorbs WHERE id = :id", {"id": xorb_id})
    return StoredXorb(*row) if row else None


async def chunks_of(tx: Tx | Database, xorb_id: str) -> bytes | None:
    """The packed table of a xorb's chunks."""
    row = await tx.one("SELECT chunks FROM xorb_chunks WHERE xorb = :xorb", {"xorb": xorb_id})
    return bytes(row["chunks"]) if row else None


_ADD = insert_row("INSERT INTO xorbs (id, hash, size, raw_size, created_at)")
_ADD_CHUNKS = insert_row("INSERT INTO xorb_chunks (xorb, chunks)")


async def add(tx: Tx, new: NewXorb, now: int) -> None:
    stored = new.stored
    values: Params = {"id": stored.id, "hash": stored.hash, "size": stored.size, "raw_size": new.raw_size}
    await tx.exec(_ADD, {**values, "created_at": now})
    await tx.exec(_ADD_CHUNKS, {"xorb": stored.id, "chunks": new.chunks})
    await add_lookups(tx, [(chunk, stored.id) for chunk in dict.fromkeys(new.lookups)])


async def add_lookups(tx: Tx, lookups: Collection[tuple[bytes, str]]) -> None:
    """List chunks for look-ups, each with the id of a xorb that contains it."""
    await tx.exec_many(_ADD_LOOKUP, [{"chunk": chunk, "xorb": xorb_id} for chunk, xorb_id in lookups])


_ADD_LOOKUP = insert_row("INSERT INTO xet_chunks (chunk, xorb)", "ON CONFLICT (chunk, xorb) DO NOTHING")


async def lock(tx: Tx, xorb_id: str) -> bool:
    """Lock a xorb against deletion until the transaction ends; False if it is not stored."""
    sql = "UPDATE xorbs SET unused_at = NULL WHERE id = :id RETURNING id"
    return await tx.one(sql, {"id": xorb_id}) is not None


_RECORD = insert_row(
    "INSERT INTO xorb_uploads (repo_id, xorb, user_id, guest, uploaded_at)",
    """
    ON CONFLICT (repo_id, xorb, user_id) DO UPDATE SET
        uploaded_at = excluded.uploaded_at,
        guest = CASE WHEN xorb_uploads.guest < excluded.guest THEN xorb_uploads.guest ELSE excluded.guest END
    """,
)


async def record_upload(tx: Tx, repo_id: str, xorb_id: str, user_id: str, *, by_guest: bool, now: int) -> None:
    """Record that a user sent a xorb to a repo. An upload by a writer stays one."""
    values: Params = {"repo_id": repo_id, "xorb": xorb_id, "user_id": user_id, "guest": int(by_guest)}
    await tx.exec(_RECORD, {**values, "uploaded_at": now})


async def sent_among(
    tx: Tx, repo_id: str, user_id: str, hashes: Collection[str], *, by_writers: bool
) -> dict[str, StoredXorb]:
    """By hash, those xorbs that the user sent to a repo; with `by_writers`, also those that its writers sent."""
    params: Params = {"repo_id": repo_id, "user_id": user_id, "by_writers": int(by_writers)}
    rows = await tx.each(_SENT, [{"hash": value} for value in hashes], params)
    return {row["hash"]: StoredXorb(*row) for row in rows}


_SENT = RowStatement(
    """
    SELECT x.id, x.hash, x.size FROM xorbs x JOIN xorb_uploads u ON u.xorb = x.id
    WHERE x.hash = :hash AND u.repo_id = :repo_id
    AND (u.user_id = :user_id OR (u.guest = 0 AND CAST(:by_writers AS bigint) = 1))
    """,
    columns_of(text="hash"),
)

# Files that only a guest uploaded count once a pull request uses them: until then others cannot download them.
_SHOWN = "(l.guest = 0 OR l.checked IS NOT NULL)"
_IN_FILE = "JOIN lfs_links l ON l.repo_id = p.repo_id AND l.oid = p.oid"
_WITH_HASH = f"""
    SELECT DISTINCT p.repo_id, x.id, x.hash, x.size FROM xorbs x JOIN xet_file_xorbs p ON p.xorb = x.id {_IN_FILE}
    WHERE x.hash = :value AND {_SHOWN}
"""
_WITH_CHUNK = f"""
    SELECT DISTINCT p.repo_id, x.id, x.hash, x.size FROM xet_chunks c JOIN xorbs x ON x.id = c.xorb
    JOIN xet_file_xorbs p ON p.xorb = x.id {_IN_FILE} WHERE c.chunk = :value AND {_SHOWN}
"""


async def repos_with(
    tx: Tx, value: str | bytes, visible: VisibleRepos, first: str, limit: int
) -> list[tuple[StoredXorb, Repo]]:
    """Repos that the caller may see with a file that has chunks of a xorb: the xorb with a hash, if `value` is text,
    or one with a chunk. The repo `first` comes first, then private ones, which are few, then those without a gate.
    """
    values: dict[str, str | int] = {"first": first, "limit": limit}
    condition = visible_repos_sql(visible, values)
    rows = await tx.all(
        f"""
        SELECT found.id, found.hash, found.size, {REPO}
        FROM ({_WITH_HASH if isinstance(value, str) else _WITH_CHUNK}) found
        JOIN repos r ON r.id = found.repo_id {OWNERS} WHERE {condition}
        ORDER BY CASE WHEN r.id = :first THEN 0 ELSE 1 END, r.private DESC, r.gated, r.id LIMIT :limit
        """,
        {**values, "value": value},
    )
    return [(StoredXorb(*list(row)[:3]), Repo(*list(row)[3:])) for row in rows]


async def ranges_in(tx: Tx, repo_id: str, xorb_id: str, limit: int) -> list[bytes]:
    """The packed ranges of chunks of a xorb that are in files of a repo."""
    rows = await tx.all(
        f"""
        SELECT p.ranges FROM xet_file_xorbs p {_IN_FILE}
        WHERE p.repo_id = :repo_id AND p.xorb = :xorb AND {_SHOWN} ORDER BY p.oid LIMIT :limit
        """,
        {"repo_id": repo_id, "xorb": xorb_id, "limit": limit},
    )
    return [bytes(row["ranges"]) for row in rows]


async def xorbs_beside(tx: Tx, repo_id: str, xorb_id: str, limit: int) -> list[StoredXorb]:
    """The xorbs of the files in a repo that have chunks of this xorb."""
    rows = await tx.all(
        f"""
        SELECT DISTINCT x.id, x.hash, x.size FROM xet_file_xorbs p {_IN_FILE}
        JOIN xet_file_xorbs o ON o.repo_id = p.repo_id AND o.oid = p.oid JOIN xorbs x ON x.id = o.xorb
        WHERE p.repo_id = :repo_id AND p.xorb = :xorb AND {_SHOWN} ORDER BY x.id LIMIT :limit
        """,
        {"repo_id": repo_id, "xorb": xorb_id, "limit": limit},
    )
    return [StoredXorb(*row) for row in rows]


async def of_file(tx: Tx | Database, repo_id: str, oid: str, xorb_hash: str) -> StoredXorb | None:
    """The xorb with this hash that a file of a repo refers to."""
    row = await tx.one(
        """
        SELECT x.id, x.hash, x.size FROM xorbs x JOIN xet_file_xorbs p ON p.xorb = x.id
        WHERE x.hash = :hash AND p.repo_id = :repo_id AND p.oid = :oid
        """,
        {"hash": xorb_hash, "repo_id": repo_id, "oid": oid},
    )
    return StoredXorb(*row) if row else None
