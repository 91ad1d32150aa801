"""SQL statements for some of the content that repos refer to, for `hubgate doctor`."""

from hubgate.server.hub.cas import model as cas
from hubgate.server.hub.lfs import files as lfs
from hubgate.server.objects.model import StoredObject
from hubgate.server.storage.database import Tx

_FILES = """
    SELECT l.oid, l.size FROM lfs_links l
    WHERE NOT EXISTS (SELECT 1 FROM xet_files f WHERE f.repo_id = l.repo_id AND f.oid = l.oid)
    ORDER BY l.repo_id, l.oid LIMIT CAST(:limit AS bigint)
"""
_XORBS = "SELECT id, size FROM xorbs ORDER BY id LIMIT CAST(:limit AS bigint)"


async def some_objects(tx: Tx, limit: int) -> list[StoredObject]:
    """Up to so many large files and as many xorbs, which must be in the store."""
    files, xorbs = await tx.all(_FILES, {"limit": limit}), await tx.all(_XORBS, {"limit": limit})
    found = [StoredObject(lfs.key_of(row["oid"]), int(row["size"])) for row in files]
    return found + [StoredObject(cas.key_of(row["id"]), int(row["size"])) for row in xorbs]
