"""One forwarded request on its own HTTP/1.1 connection, streamed in both directions with bounded memory."""

import asyncio
from collections.abc import AsyncGenerator

import httptools
from msgspec import Struct

from hubgate.server.errors import BadGateway, GatewayTimeout
from hubgate.server.gateway.headers import RawHeaders
from hubgate.server.gateway.upstream import Upstream

MAX_HEAD_BYTES = 64 * 1024
HIGHEST_STATUS = 599
_READ_BYTES = 64 * 1024


class RequestHead(Struct, frozen=True):
    """The head of a forwarded request. `target` is the path and query below the service's base address.

    `length` is the length of the body; None if the body is sent in chunks.
    """

    method: str
    target: bytes
    headers: RawHeaders
    length: int | None

    def encode(self, upstream: Upstream) -> bytes:
        lines = [b"%b %b%b HTTP/1.1" % (self.method.encode(), upstream.prefix.encode(), self.target)]
        lines.append(b"host: " + upstream.authority.encode())
        lines += [b"%b: %b" % pair for pair in self.headers]
        if self.length is None:
            lines.append(b"transfer-encoding: chunked")
        elif self.length or self.method not in ("GET", "HEAD"):
            lines.append(b"content-length: %d" % self.length)
        return b"\r\n".join([*lines, b"connection: close", b"", b""])


class StoppedReading(Exception):
    """The service no longer reads the body. Its response, if there is one, says why."""


class UpstreamConnection:
    """A request in flight. One task may send while another reads the response."""

    def __init__(
        self,
        upstream: Upstream,
        head: RequestHead,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        longest_silence: float,
    ) -> None:
        self.status = 0
        self.headers: RawHeaders = []
        self._label = upstream.label
        self._reader, self._writer = streams
        self._longest_silence = longest_silence
        self._is_head = head.method == "HEAD"
        self._is_chunked = head.length is None
        self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = 0
        self._has_length = self._in_body = self._is_complete = False
        self._pieces: list[bytes] = []
        self._active_at = 0.0
        self._writer.write(head.encode(upstream))

    async def send(self, part: bytes) -> None:
        """Send a part of the body, which must not be empty; returns once most of it was written to the socket."""
        await self._write(b"%x\r\n%b\r\n" % (len(part), part) if self._is_chunked else part)

    async def finish(self) -> None:
        """Mark the end of the body."""
        if self._is_chunked:
            await self._write(b"0\r\n\r\n")

    async def receive_head(self) -> None:
        """Wait for the head of the response; sets `status` and `headers`."""
        while not self._in_body:
            await self._feed()
        if self.status > HIGHEST_STATUS:
            # The parser accepts such a status, but the hub's HTTP server cannot send it.
            raise BadGateway(f"The {self._label} sent an invalid response.")

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body as it is received. Raises if the service closes the connection before the end."""
        while True:
            if self._pieces:
                part, self._pieces = b"".join(self._pieces), []
                yield part
            if self._is_complete:
                return
            await self._feed()

    def abort(self) -> None:
        """Close at once, without sending buffered data: the service sees that the client is gone."""
        self._writer.transport.abort()

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise StoppedReading from error
        self._active_at = asyncio.get_running_loop().time()

    async def _feed(self) -> None:
        try:
            data = await self._read()
            if data:
                self._parser.feed_data(data)
        except OSError as error:
            # Usually a reset: the service was killed or restarted.
            message = f"The connection to the {self._label} was lost before its response was complete. Try again later."
            raise BadGateway(message) from error
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            raise BadGateway(f"The {self._label} sent an invalid response.") from error
        if not data:
            if not self._in_body or self._has_length:
                raise BadGateway(f"The {self._label} closed the connection before its response was complete.")
            # A body without a length ends when the connection is closed.
            self._is_complete = True
        self._head_bytes += len(data)
        if not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
            raise BadGateway(f"The {self._label} sent too many headers.")

    async def _read(self) -> bytes:
        """The next bytes; b"" at the end. Sending a body counts as activity, so a long upload is not a timeout."""
        loop = asyncio.get_running_loop()
        self._active_at = loop.time()
        reading = asyncio.ensure_future(self._reader.read(_READ_BYTES))
        try:
            while not reading.done():
                seconds = self._active_at + self._longest_silence - loop.time()
                if seconds <= 0:
                    raise GatewayTimeout(f"The {self._label} did not respond in time.")
                await asyncio.wait({reading}, timeout=seconds)
            return reading.result()
        finally:
            reading.cancel()

    # Called by the parser.

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are not forwarded.
        if not self._in_body:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        # Bytes after the end of the response are not a second response.
        if self._in_body:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:
            return
        self._in_body = True
        self._has_length = any(name in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        # The response to HEAD has the length of a body that does not follow.
        self._is_complete = self._is_head

    def on_body(self, body: bytes) -> None:
        if not self._is_complete:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._in_body:
            self._is_complete = True
        else:
            # 100 or 103: the final response follows.
            self.headers = []
