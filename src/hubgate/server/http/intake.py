"""Checks on the headers and the body of every request, before any other code reads them.

The HTTP servers do not limit the size or duration of a body, and accept two Authorization headers, a missing Host and
100 KB of headers. If two layers read different copies of a repeated header, an attacker can exploit the difference, so
a repeated single-value header is rejected, and so is a body with two lengths.
"""

import asyncio
import re
from itertools import chain

from hubgate.server.errors import BadRequest, HeadersTooLarge, PayloadTooLarge, RequestTimeout
from hubgate.server.http.asgi import Message, Receive, RequestHeaders, Scope

MAX_HEADER_BYTES = 32 * 1024
LONGEST_TARGET = 16 * 1024
# Legitimate clients reach this rate even on a slow connection: each time this many bytes are received, the deadline is
# extended by a second.
SLOWEST_BYTES_PER_SECOND = 16 * 1024

_SINGLE_VALUE = frozenset(
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


def check_head(scope: Scope, headers: RequestHeaders) -> None:
    values = headers.first
    if len(values) < len(headers.raw):
        _check_repeated(headers)
    if sum(map(len, chain.from_iterable(headers.raw))) > MAX_HEADER_BYTES:
        raise HeadersTooLarge("The headers are too large.")
    if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_TARGET:
        raise HeadersTooLarge("The address is too long.")
    if scope["http_version"] == "1.1" and not values.get(b"host"):
        raise BadRequest("The Host header is missing.")
    _check_framing(values)


def _check_repeated(headers: RequestHeaders) -> None:
    seen: set[bytes] = set()
    for name, _ in headers.raw:
        if name in seen and name in _SINGLE_VALUE:
            raise BadRequest(f"The {name.decode()} header was sent more than once.")
        seen.add(name)


def _check_framing(values: dict[bytes, bytes]) -> None:
    encoding, length = values.get(b"transfer-encoding"), values.get(b"content-length")
    if encoding is not None and (length is not None or encoding.strip().lower() != b"chunked"):
        # Request smuggling (RFC 9112, section 6.1).
        raise BadRequest("Send the body with Content-Length or chunked, not both, and without another transfer coding.")
    if length is not None and not _LENGTH.match(length):
        raise BadRequest("Content-Length is not a number.")


def has_body(headers: RequestHeaders) -> bool:
    """Whether a body follows the headers, which may not have been checked: a malformed length counts as one."""
    return headers.first.get(b"content-length", b"").strip(b"0") != b"" or b"transfer-encoding" in headers.first


class BoundedBody:
    """A `receive` that enforces a size limit and a deadline for the whole body, however slowly the client sends."""

    __slots__ = (
        "_cap",
        "_deadline",
        "_disconnect_task",
        "_length",
        "_on_complete",
        "_receive",
        "_received",
        "complete",
    )

    def __init__(self, receive: Receive, headers: RequestHeaders, cap: int, seconds: float) -> None:
        self._receive = receive
        self._cap = cap
        self._received = 0
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._length = int(headers.first.get(b"content-length", b"0"))
        # Also for a request without a body.
        self.complete = not has_body(headers)
        self._on_complete: asyncio.Event | None = None
        self._disconnect_task: asyncio.Task[Message] | None = None

    def check_declared_length(self) -> None:
        if self._length > self._cap:
            raise self._too_large()

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout_at(self._deadline + self._received / SLOWEST_BYTES_PER_SECOND):
                message = await self._receive()
        except TimeoutError:
            raise RequestTimeout("The body was not received in time.") from None
        self._received += len(message.get("body", b""))
        if self._received > self._cap:
            raise self._too_large()
        if self._received == self._length > 0:
            # One server announces the end of such a body in another message, which need not be awaited.
            message["more_body"] = False
        if not message.get("more_body", False):
            self.complete = True
            if self._on_complete is not None:
                self._on_complete.set()
        return message

    async def disconnected(self) -> Message:
        """The `receive` of a response: waits for the client to disconnect. Never consumes a part of the body, which the
        handler may still read while its response streams (git does). Any number of tasks may wait: they share one call
        to the server, which notifies only one of several concurrent calls."""
        if self._disconnect_task is None:
            self._disconnect_task = asyncio.ensure_future(self._wait_for_disconnect())
        return await asyncio.shield(self._disconnect_task)

    def close(self) -> None:
        """Stop waiting for the client to disconnect."""
        if self._disconnect_task is not None:
            self._disconnect_task.cancel()

    async def _wait_for_disconnect(self) -> Message:
        if not self.complete:
            self._on_complete = asyncio.Event()
            await self._on_complete.wait()
        while (message := await self._receive())["type"] != "http.disconnect":
            continue
        return message

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(f"The body is larger than the {self._cap:,} bytes allowed here.")
