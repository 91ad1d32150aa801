"""Look-ups of chunks: a client that is about to upload asks which of its chunks are already stored, and where.

Only xorbs whose content the caller may read are found. The answer lists all chunks of the files around the chunk, by
keyed hashes, so it says something only about chunks that the client already has.
"""

from hubgate.server.access.identity import Identity
from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.permissions import readable_repo_with
from hubgate.server.hub.cas.tables import tables_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.xet.hashes import parse_hash
from hubgate.server.hub.xet.shard_writer import lookup_answer

# Less than the time for which an unused xorb is retained (`cleanup.py`): clients use an answer until then.
_VALIDITY = 12 * HOUR
_MAX_CANDIDATES = 16
# Xorbs in an answer: about four gigabytes of files, and three megabytes of hashes.
_MAX_XORBS = 64
_KEY_PURPOSE = "chunk look-ups"


async def look_up(repos: Repos, identity: Identity, repo: Repo, chunk: bytes) -> bytes | None:
    """The answer, a shard; None if the chunk is in no file that the caller may read."""
    candidates = await repos.db.read_long(lambda tx: store.xorbs_with_chunk(tx, chunk, _MAX_CANDIDATES))
    for xorb in candidates:
        found = await readable_repo_with(repos, identity, xorb, repo.id)
        if found is not None:
            return await _answer(repos, identity, found, xorb)
    return None


async def _answer(repos: Repos, identity: Identity, repo: Repo, xorb: str) -> bytes:
    others = await repos.db.read_long(lambda tx: store.xorbs_beside(tx, repo.id, xorb, _MAX_XORBS))
    names = dict.fromkeys([xorb, *others])
    tables = await tables_of(repos, map(parse_hash, names))
    now = repos.clock()
    # One key a day for each user: clients compare their chunks under every key that they have received.
    key = repos.secret.mac(_KEY_PURPOSE, f"{identity.user_id or ''} {now // DAY}".encode())
    return await in_thread(lookup_answer, tables.items(), key, now // SECOND, (now + _VALIDITY) // SECOND)
