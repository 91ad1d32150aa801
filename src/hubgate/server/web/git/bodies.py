"""The body of a git request as git wrote it: its clients compress what they ask for."""

import zlib
from collections.abc import AsyncIterator

from hubgate.server.errors import BadRequest, PayloadTooLarge, UnsupportedMedia
from hubgate.server.http.request import HubRequest

# Of what is inflated, this much is in memory at once, however small it came.
_STEP = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Body:
    """`most` bounds what comes out, as the route's cap bounds what comes in: a few kilobytes of gzip hold gigabytes.

    `ended` once all of it has been read.
    """

    def __init__(self, request: HubRequest, most: int) -> None:
        self.ended = False
        match request.headers.get("content-encoding", "identity").strip().lower():
            case "identity":
                self._parts = _parts(request)
            case "gzip" | "x-gzip":
                self._parts = inflated(_parts(request), most)
            case _:
                raise UnsupportedMedia("Send the body as it is or with gzip.")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part
        self.ended = True


async def _parts(request: HubRequest) -> AsyncIterator[bytes]:
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        # Nothing will come, and whoever waits for the client to leave has taken the message that says so.
        return
    async for part in request.stream():
        if part:
            yield part


async def inflated(parts: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    inflating, count = zlib.decompressobj(_GZIP), 0
    async for part in parts:
        out = b""
        while (part or len(out) == _STEP) and not inflating.eof:
            out = _inflated(inflating, part)
            part = inflating.unconsumed_tail
            count += len(out)
            if count > most:
                raise PayloadTooLarge(f"The body is larger than the {most:,} bytes taken here.")
            if out:
                yield out
    if not inflating.eof:
        raise BadRequest("The compressed body ended early.")


def _inflated(inflating: "zlib._Decompress", part: bytes) -> bytes:
    try:
        return inflating.decompress(part, _STEP)
    except zlib.error:
        raise BadRequest("The body is not gzip.") from None
