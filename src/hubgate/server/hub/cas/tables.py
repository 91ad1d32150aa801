"""The tables of xorbs, read from the database as they are needed."""

from collections.abc import Iterable

from hubgate.server.hub.cas import store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.xorb_table import XorbTable
from hubgate.server.objects.model import ObjectMissing


async def table_of(repos: Repos, xorb: bytes) -> XorbTable:
    packed = await store.chunks_of(repos.db, hash_text(xorb))
    if packed is None:
        raise ObjectMissing(hash_text(xorb))
    return await in_thread(XorbTable.from_bytes, packed)


async def tables_of(repos: Repos, xorbs: Iterable[bytes]) -> dict[bytes, XorbTable]:
    return {xorb: await table_of(repos, xorb) for xorb in xorbs}
