"""One HTTP/1.1 connection that sends a request and reads a response of bounded size.

There is no redirect, cookie or decompression code that would have to be switched off. The response body is read up to
a cap; the connection is closed if the body is longer.
"""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import httptools

from hubgate.server.egress.resolve import Unreachable

# Status line and headers of the response, interim responses included.
MAX_HEAD_BYTES = 64 * 1024
LONGEST_ROUND_TRIP = 0.25
# The worst legitimate framing, chunks of one byte, makes a body up to this many times longer on the wire.
_FRAMING = 8

_CHUNKED_LAST = re.compile(rb"(?:^|,)[ \t]*chunked[ \t]*\Z", re.IGNORECASE)


@dataclass(slots=True)
class HttpResponse:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    # The body was longer than the cap.
    truncated: bool = False

    def header(self, name: str) -> str | None:
        """The value of the first header `name`, which must be given in lower case; None if there is no such header."""
        return next((value for given, value in self.headers if given == name), None)


OnEnd = Callable[["HttpResponse | Unreachable"], None]


class Connection(asyncio.Protocol):
    """A connection for one exchange at a time. `is_reusable` says whether another exchange may follow."""

    def __init__(self) -> None:
        self.is_reusable = False
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None
        self._on_end: OnEnd | None = None
        # The outcome of the exchange; reported once the parser has returned.
        self._outcome: HttpResponse | Unreachable | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._begin(HttpResponse(), 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every event loop's transport is an `asyncio.Transport`, but all have its methods.
        self._transport = cast("asyncio.Transport", transport)

    def start(self, request: bytes, cap: int, on_end: OnEnd) -> None:
        """Send a request. `on_end` is called once, with the response or the error."""
        self._begin(HttpResponse(), cap)
        self._sent_at = time.monotonic()
        # Until a response says otherwise: a deadline that ends the exchange must close the connection.
        self.is_reusable = False
        self._on_end, self._outcome = on_end, None
        if self._transport is None or self._transport.is_closing():
            self.fail("the connection was closed")
            return
        self._transport.write(request)

    async def exchange(self, request: bytes, cap: int) -> HttpResponse:
        ended: asyncio.Future[HttpResponse | Unreachable] = asyncio.get_running_loop().create_future()
        self.start(request, cap, lambda outcome: None if ended.done() else ended.set_result(outcome))
        try:
            outcome = await ended
        except asyncio.CancelledError:
            self._on_end = None
            self.close()
            raise
        if isinstance(outcome, Unreachable):
            raise outcome
        return outcome

    @property
    def was_closed_before_use(self) -> bool:
        """Whether the peer closed the connection before it read the request: within one round trip, without a response.

        A peer that took longer may have processed the request, which must then not be sent again silently.
        """
        return self._head_bytes == 0 and time.monotonic() - self._sent_at < LONGEST_ROUND_TRIP

    def close(self) -> None:
        self.is_reusable = False
        if self._transport is not None:
            # Not close(): unsent data would keep a slow peer's connection open.
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._on_end is None:
            # A peer that sends unrequested data cannot be trusted with the next request.
            self.close()
            return
        if not self._in_body:
            self._head_bytes += len(data)
        self._received += len(data)
        if self._received > 2 * MAX_HEAD_BYTES + _FRAMING * self._cap and self._in_body:
            # Neither headers nor body: trailers or chunk extensions.
            self.fail("more framing than body")
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(f"the answer is not HTTP: {error}")
            return
        if self._outcome is None and not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
            self.fail(f"more than {MAX_HEAD_BYTES:,} bytes of headers")
            return
        self._report()

    def eof_received(self) -> bool:
        if self._in_body and not self._length_is_known:
            # A body without a length ends when the connection is closed.
            self._finish(reusable=False)
            self._report()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            # uvloop does not call eof_received if the peer closes without a TLS close_notify.
            self.eof_received()
        self.is_reusable = False
        self.fail(f"the connection broke: {exc}" if exc else "the connection was closed early")

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._on_end is None or self._outcome is not None:
            # A second response to one request.
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            # Trailers are not used.
            return
        lower = name.lower()
        if lower == b"content-length" or (lower == b"transfer-encoding" and _CHUNKED_LAST.search(value)):
            # With any other coding the body ends when the connection is closed (RFC 9112, section 6.3).
            self._length_is_known = True
        self._response.headers.append((lower.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._response.status = self._parser.get_status_code()
        self._in_body = self._response.status >= 200
        if self._response.status < 100:
            self._outcome = Unreachable("the answer is not HTTP: it has no status")

    def on_body(self, body: bytes) -> None:
        room = self._cap - len(self._body)
        self._body += body[:room]
        if len(body) > room:
            self._response.truncated = True
            self._finish(reusable=False)

    def on_message_complete(self) -> None:
        if self._response.status < 200:
            # 100 or 103: the final response follows. Interim bytes count towards the limit.
            self._begin(HttpResponse(), self._cap, self._head_bytes)
            return
        self._finish(reusable=self._parser.should_keep_alive())

    def _begin(self, response: HttpResponse, cap: int, head_bytes: int = 0) -> None:
        self._response, self._cap, self._head_bytes = response, cap, head_bytes
        self._received = head_bytes
        self._body = bytearray()
        self._in_body = self._length_is_known = False
        if head_bytes == 0:
            self._parser = httptools.HttpResponseParser(self)

    def _finish(self, *, reusable: bool) -> None:
        if self._outcome is None:
            self.is_reusable = reusable
            self._response.body = bytes(self._body)
            self._outcome = self._response
            # Further data must not change the response that is reported.
            self._response = HttpResponse()

    def fail(self, cause: str) -> None:
        """End the exchange without a response."""
        self.is_reusable = False
        if self._outcome is None:
            self._outcome = Unreachable(cause)
        self._report()

    def _report(self) -> None:
        outcome, on_end = self._outcome, self._on_end
        if outcome is None or on_end is None:
            return
        self._on_end = None
        if not self.is_reusable:
            self.close()
        on_end(outcome)
