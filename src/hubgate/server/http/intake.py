"""What a request must be before anything looks at it.

Neither HTTP server below us caps or times a body, and both pass on two Authorization headers, a missing Host and 100 KB
of headers. Layers that read different ones of two equal headers can be played off against each other, so a doubled
single-value header is refused.
"""

import asyncio
from collections import Counter

from starlette.types import Message, Receive, Scope

from hubgate.server.errors import BadRequest, HeadersTooLarge, PayloadTooLarge, RequestTimeout

MOST_HEADER_BYTES = 32 * 1024
LONGEST_TARGET = 16 * 1024

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


def check_head(scope: Scope) -> None:
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
        raise HeadersTooLarge("The headers are too large.")
    if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_TARGET:
        raise HeadersTooLarge("The address is too long.")
    # HTTP/2 may split Cookie by design (RFC 9113, section 8.2.3).
    single = _SINGLE - {b"cookie"} if scope["http_version"] == "2" else _SINGLE
    seen = Counter(name for name, value in headers if name in single and (value or name != b"host"))
    for name, times in seen.items():
        if times > 1:
            raise BadRequest(f"The {name.decode()} header was sent {times} times.")
    if scope["http_version"] == "1.1" and b"host" not in seen:
        raise BadRequest("The Host header is missing.")


class BoundedBody:
    """A `receive` that enforces a cap in bytes and a deadline for the whole body, however slowly it drips."""

    def __init__(self, receive: Receive, scope: Scope, cap: int, seconds: float) -> None:
        self._receive = receive
        self._left = cap
        self._cap = cap
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._complete = False
        _refuse_announced(scope, cap)

    async def __call__(self) -> Message:
        if self._complete:
            # Waiting for a disconnect is no longer about the body.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeout("The body did not arrive in time.") from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _too_large(self._cap)
            self._complete = not message.get("more_body", False)
        else:
            self._complete = True
        return message


def _refuse_announced(scope: Scope, cap: int) -> None:
    for name, value in scope["headers"]:
        if name == b"content-length":
            if not value.isdigit():
                raise BadRequest("Content-Length is not a number.")
            if int(value) > cap:
                raise _too_large(cap)


def _too_large(cap: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than the {cap:,} bytes taken here.")
