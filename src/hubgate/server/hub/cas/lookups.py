"""Look-ups of chunks: a client that is about to upload asks which of its chunks are already stored, and where.

Only chunks in files that the caller may read are found. The answer lists the chunks of the files around the chunk, by
keyed hashes, so it says something only about chunks that the client already has.
"""

import secrets
from collections.abc import Sequence

from hubgate.server.access.identity import Identity
from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.cas.permissions import ReadableXorb, find_readable, ranges_in
from hubgate.server.hub.cas.ranges import Range, only_covered
from hubgate.server.hub.cas.tables import table_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.xet.hashes import HASH_SIZE, parse_hash
from hubgate.server.hub.xet.shard_writer import lookup_answer
from hubgate.server.hub.xet.xorb_table import XorbTable

# Less than the time for which an unused xorb is retained (`cleanup.py`): clients use an answer until then.
_VALIDITY = 12 * HOUR
# Xorbs in an answer: about four gigabytes of files, and three megabytes of hashes.
_MAX_XORBS = 64
_KEY_PURPOSE = "chunk look-ups"


async def look_up(repos: Repos, identity: Identity, repo: Repo, chunk: bytes) -> bytes | None:
    """The answer, a shard; None if the chunk is in no file that the caller may read."""
    for found in await find_readable(repos, identity, chunk, repo.id):
        table = await _shown(repos, found.xorb, found.ranges)
        # The chunk may be in another part of the xorb, which is not in these files.
        if any(value == chunk for value, _ in table):
            return await _answer(repos, identity, found, table)
    return None


async def _answer(repos: Repos, identity: Identity, found: ReadableXorb, table: XorbTable) -> bytes:
    home = found.repo
    others = await repos.db.read_long(lambda tx: store.xorbs_beside(tx, home.id, found.xorb.id, _MAX_XORBS))
    listed = {found.xorb.hash: table}
    for xorb in others:
        if xorb.hash not in listed:
            listed[xorb.hash] = await _shown(repos, xorb, await ranges_in(repos, home, xorb))
    now = repos.clock()
    # One key a day for each user: clients compare their chunks under every key that they have received.
    key = repos.secret.mac(_KEY_PURPOSE, f"{identity.user_id or ''} {now // DAY}".encode())
    xorbs = [(parse_hash(name), shown) for name, shown in listed.items()]
    return await in_thread(lookup_answer, xorbs, key, now // SECOND, (now + _VALIDITY) // SECOND)


async def _shown(repos: Repos, xorb: StoredXorb, ranges: Sequence[Range]) -> XorbTable:
    """The chunks of a xorb that are in the files, at their numbers."""
    table = await table_of(repos, xorb)
    return await in_thread(only_covered, table, ranges, secrets.token_bytes(HASH_SIZE))
