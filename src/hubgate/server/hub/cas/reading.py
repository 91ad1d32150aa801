"""The content of files that are stored as chunks, composed as it is read. Memory is bounded by a part and a chunk."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hubgate.server.hub.cas import store
from hubgate.server.hub.cas.tables import table_of
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.chunk_format import ChunkDecoder
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.plan import Piece, Selection, Window, plan, select
from hubgate.server.hub.xet.shard import parse_terms
from hubgate.server.objects.model import ObjectMissing


async def content(repos: Repos, terms: bytes, start: int, end: int) -> AsyncGenerator[bytes, None]:
    """The bytes of a file from `start` up to, but not including, `end`, which is not after its end."""
    if start >= end:
        return
    selection = select(parse_terms(terms), start, end)
    if selection is None or selection.length != end - start:
        raise ValueError(f"bytes {start} to {end} of a shorter file")
    # Only the first and the last term may be needed in part. Each is planned alone, so that one table is in memory.
    skip, length = selection.skip, selection.length
    for term in selection.terms:
        part = Selection((term,), skip, min(length, term.size - skip))
        planned = plan(part, {term.xorb: await table_of(repos, term.xorb)})
        for piece in planned.pieces:
            async with aclosing(_piece(repos, piece, Window(planned.skip, planned.length))) as parts:
                async for chunk in parts:
                    yield chunk
        skip, length = 0, length - part.length


async def _piece(repos: Repos, piece: Piece, window: Window) -> AsyncGenerator[bytes, None]:
    xorb = await store.find(repos.db, hash_text(piece.term.xorb))
    if xorb is None:
        raise ObjectMissing(hash_text(piece.term.xorb))
    decoder = ChunkDecoder()

    def decode(part: bytes) -> bytes:
        return b"".join(window.take(chunk.content) for chunk in decoder.feed(part))

    async with aclosing(repos.objects.get(xorb.object, piece.stored_start, piece.stored_end)) as parts:
        async for part in parts:
            if decoded := await in_thread(decode, part):
                yield decoded
    if window.missing:
        raise ObjectMissing(xorb.object)
