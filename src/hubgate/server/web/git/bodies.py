"""The body of a git request, decompressed: git clients compress their requests."""

import zlib
from collections.abc import AsyncIterator

from hubgate.server.errors import BadRequest, PayloadTooLarge, UnsupportedMedia
from hubgate.server.http.request import HubRequest

# At most this much decompressed data is in memory at once.
_STEP = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Body:
    """A request body. `most` limits the decompressed size, as the route's cap limits the received size: a few kilobytes
    of gzip can contain gigabytes.

    `ended` is True once the whole body has been read.
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
        # There is no body, and the task that waits for a disconnect has consumed the message that says so.
        return
    async for part in request.stream():
        if part:
            yield part


async def inflated(parts: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    decompressor, count = zlib.decompressobj(_GZIP), 0
    async for part in parts:
        out = b""
        while (part or len(out) == _STEP) and not decompressor.eof:
            out = _decompress(decompressor, part)
            part = decompressor.unconsumed_tail
            count += len(out)
            if count > most:
                raise PayloadTooLarge(f"The body is larger than the {most:,} bytes allowed here.")
            if out:
                yield out
    if not decompressor.eof:
        raise BadRequest("The compressed body ended early.")


def _decompress(decompressor: "zlib._Decompress", part: bytes) -> bytes:
    try:
        return decompressor.decompress(part, _STEP)
    except zlib.error:
        raise BadRequest("The body is not gzip.") from None
