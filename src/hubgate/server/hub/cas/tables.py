"""Xorbs by their hashes, within a file or an upload, and their tables, read from the database as they are needed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.xorb_table import XorbTable
from hubgate.server.objects.model import ObjectMissing
from hubgate.server.storage.database import Database

# Files return to the same xorb often, but rarely to one of long ago. A table has at most a third of a megabyte.
_CACHED = 32


class Xorbs(Protocol):
    """Finds the stored xorb for a hash: the same xorb may be stored several times, for users who know nothing of each
    other.
    """

    async def find(self, xorb: bytes) -> StoredXorb:
        """The xorb; `ObjectMissing` if there is none."""


class XorbsOfFile(Struct, frozen=True):
    """The xorbs that a file of a repo refers to."""

    db: Database
    repo_id: str
    oid: str

    async def find(self, xorb: bytes) -> StoredXorb:
        found = await store.of_file(self.db, self.repo_id, self.oid, hash_text(xorb))
        if found is None:
            raise ObjectMissing(hash_text(xorb))
        return found


class GivenXorbs(Struct, frozen=True):
    """The xorbs that an upload may refer to, by hash."""

    by_hash: Mapping[str, StoredXorb]

    async def find(self, xorb: bytes) -> StoredXorb:
        return self.by_hash[hash_text(xorb)]


async def table_of(repos: Repos, xorb: StoredXorb) -> XorbTable:
    packed = await store.chunks_of(repos.db, xorb.id)
    if packed is None:
        raise ObjectMissing(xorb.key)
    return await in_thread(XorbTable.from_bytes, packed)


@dataclass
class TableCache:
    """The xorbs that one request needed last, with their tables."""

    repos: Repos
    xorbs: Xorbs
    _found: dict[bytes, tuple[StoredXorb, XorbTable]] = field(default_factory=dict)

    async def get(self, xorb: bytes) -> tuple[StoredXorb, XorbTable]:
        found = self._found.get(xorb)
        if found is None:
            if len(self._found) == _CACHED:
                self._found.clear()
            stored = await self.xorbs.find(xorb)
            found = self._found[xorb] = stored, await table_of(self.repos, stored)
        return found
