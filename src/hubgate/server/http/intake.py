"""What a request must be before anything looks at it.

Neither HTTP server below us caps or times a body, and both pass on two Authorization headers, a missing Host and 100 KB
of headers. Layers that read different ones of two equal headers can be played off against each other, so a doubled
single-value header is refused, and so is a body with two announced lengths.
"""

import asyncio
import re

from starlette.types import Message, Receive, Scope

from hubgate.server.errors import BadRequest, HeadersTooLarge, PayloadTooLarge, RequestTimeout

MOST_HEADER_BYTES = 32 * 1024
LONGEST_TARGET = 16 * 1024
# What an honest client on a bad line still reaches; a large body gets this much more time.
SLOWEST_BYTES_PER_SECOND = 16 * 1024

_SINGLE = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"cookie",
        b"host",
        b"origin",
        b"range",
        b"sec-fetch-site",
        b"transfer-encoding",
    }
)
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")


def check_head(scope: Scope) -> None:
    size = 0
    values: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name in _SINGLE:
            if name in values:
                raise BadRequest(f"The {name.decode()} header was sent more than once.")
            values[name] = value
    if size > MOST_HEADER_BYTES:
        raise HeadersTooLarge("The headers are too large.")
    if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_TARGET:
        raise HeadersTooLarge("The address is too long.")
    if scope["http_version"] == "1.1" and not values.get(b"host"):
        raise BadRequest("The Host header is missing.")
    _check_framing(values)


def _check_framing(values: dict[bytes, bytes]) -> None:
    encoding, length = values.get(b"transfer-encoding"), values.get(b"content-length")
    if encoding is not None and (length is not None or encoding.strip().lower() != b"chunked"):
        # RFC 9112, section 6.1: the stuff of request smuggling.
        raise BadRequest("Send the body with Content-Length or chunked, not both, and not encoded otherwise.")
    if length is not None and not _LENGTH.match(length):
        raise BadRequest("Content-Length is not a number.")


class BoundedBody:
    """A `receive` that enforces a cap in bytes and a deadline for the whole body, however slowly it drips."""

    def __init__(self, receive: Receive, scope: Scope, cap: int, seconds: float) -> None:
        self._receive = receive
        self._cap = cap
        self._received = 0
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._length, chunked = 0, False
        for name, value in scope["headers"]:
            if name == b"content-length":
                self._length = int(value)
            elif name == b"transfer-encoding":
                chunked = True
        self._departure: asyncio.Task[Message] | None = None
        # None without a body: nothing is to be waited for.
        self._over = asyncio.Event() if self._length or chunked else None

    @property
    def complete(self) -> bool:
        return self._over is None or self._over.is_set()

    def refuse_announced(self) -> None:
        if self._length > self._cap:
            raise self._too_large()

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout_at(self._deadline + self._received / SLOWEST_BYTES_PER_SECOND):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeout("The body did not arrive in time.") from None
        self._received += len(message.get("body", b""))
        if self._received > self._cap:
            raise self._too_large()
        if self._over is not None and not message.get("more_body", False):
            self._over.set()
        return message

    async def gone(self) -> Message:
        """The `receive` of a response. It waits for the client to go and never takes a part of the body, which the
        handler may still be reading while its answer streams (git does). Any number may wait: the server is asked once,
        as it tells only one of those who ask at the same time."""
        if self._departure is None:
            self._departure = asyncio.ensure_future(self._gone())
        return await asyncio.shield(self._departure)

    def close(self) -> None:
        """Nobody waits for the client any more."""
        if self._departure is not None:
            self._departure.cancel()

    async def _gone(self) -> Message:
        if self._over is not None:
            await self._over.wait()
        while (message := await self._receive())["type"] != "http.disconnect":
            continue
        return message

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The body is larger than the {self._cap:,} bytes taken here.")
