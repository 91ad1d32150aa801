"""The tables of xorbs, read from the database as they are needed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hubgate.server.hub.cas import store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.xorb_table import XorbTable
from hubgate.server.objects.model import ObjectMissing

# Files return to the same xorb often, but rarely to one of long ago. A table has at most a third of a megabyte.
_CACHED = 32


async def table_of(repos: Repos, xorb: bytes) -> XorbTable:
    packed = await store.chunks_of(repos.db, hash_text(xorb))
    if packed is None:
        raise ObjectMissing(hash_text(xorb))
    return await in_thread(XorbTable.from_bytes, packed)


async def tables_of(repos: Repos, xorbs: Iterable[bytes]) -> dict[bytes, XorbTable]:
    return {xorb: await table_of(repos, xorb) for xorb in xorbs}


@dataclass
class TableCache:
    """The tables that one request needed last."""

    repos: Repos
    _tables: dict[bytes, XorbTable] = field(default_factory=dict)

    async def get(self, xorb: bytes) -> XorbTable:
        found = self._tables.get(xorb)
        if found is None:
            if len(self._tables) == _CACHED:
                self._tables.clear()
            found = self._tables[xorb] = await table_of(self.repos, xorb)
        return found
