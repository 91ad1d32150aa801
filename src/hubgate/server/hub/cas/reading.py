"""The content of files that are stored as chunks, composed as it is read. Memory is bounded by a part and a chunk."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hubgate.server.hub.cas.model import StoredXorb
from hubgate.server.hub.cas.planning import plans
from hubgate.server.hub.cas.tables import Xorbs
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.chunk_format import ChunkDecoder
from hubgate.server.hub.xet.plan import Piece, Window
from hubgate.server.objects.model import ObjectMissing


async def content(repos: Repos, xorbs: Xorbs, terms: bytes, start: int, end: int) -> AsyncGenerator[bytes, None]:
    """The bytes of a file from `start` up to, but not including, `end`, which is not after its end."""
    async with aclosing(plans(repos, xorbs, terms, start, end)) as planned:
        async for xorb, plan in planned:
            window = Window(plan.skip, plan.length)
            for piece in plan.pieces:
                async with aclosing(_piece(repos, xorb, piece, window)) as parts:
                    async for part in parts:
                        yield part
            if window.missing:
                raise ObjectMissing(xorb.key)


async def _piece(repos: Repos, xorb: StoredXorb, piece: Piece, window: Window) -> AsyncGenerator[bytes, None]:
    decoder = ChunkDecoder()
    async with aclosing(repos.objects.get(xorb.key, piece.stored_start, piece.stored_end)) as parts:
        async for part in parts:
            chunks = decoder.feed(part)
            while block := await in_thread(window.take_some, chunks):
                yield block
