"""HTTP/1.1 over plain sockets, for the tests' own requests: httpx's transport takes as long for a request as the hub.

Answers are parsed more strictly than by httpx, and a malformed one fails the test.
"""

import re
import select
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import httpx

_LARGEST_HEAD = 100_000
_RECEIVED_AT_ONCE = 65_536
# Connections that were idle for longer are not used again: uvicorn closes them after five seconds.
_IDLE_SECONDS = 2

_FIELD = rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\r\n"
_FIELDS = re.compile(_FIELD)
_HEAD = re.compile(rb"HTTP/1\.1 ([1-5]\d\d) ([^\x00-\x08\x0a-\x1f\x7f]*)\r\n((?:" + _FIELD + rb")*)\r\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")

_Fields = list[tuple[bytes, bytes]]


class LeanClient(httpx.Client):
    """An httpx client with this transport, and without httpx's slowest steps where they have no effect."""

    def __init__(self, **options: Any) -> None:
        super().__init__(transport=LeanTransport(), **{"timeout": 60, **options})
        self._cookies = _Cookies(self._cookies)

    def _merge_url(self, url: httpx.URL | str) -> httpx.URL:
        if isinstance(url, str) and url.startswith("/") and not url.startswith("//") and "#" not in url:
            return httpx.URL(str(self.base_url).rstrip("/") + url)
        return super()._merge_url(url)


def request(method: str, url: str, **options: Any) -> httpx.Response:
    """Send a request on a connection of its own. httpx's functions create a TLS context for each."""
    with LeanClient(timeout=60) as client:
        return client.request(method, url, **options)


get, post, put = (partial(request, method) for method in ("GET", "POST", "PUT"))


class _Cookies(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None:
        if "set-cookie" in response.headers:
            super().extract_cookies(response)


class LeanTransport(httpx.BaseTransport):
    """Sends requests over connections that are used again. May be shared by threads."""

    def __init__(self) -> None:
        self._idle: dict[bytes, list[_Connection]] = defaultdict(list)
        self._is_closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._connection(request)
        try:
            connection.send(request)
            status, reason, fields = connection.receive_head()
            pieces = connection.receive_body(request.method, status, fields)
        except BaseException:
            connection.close()
            raise
        is_last = b"close" in _values(fields, b"connection")
        body = _Body(self, connection, pieces, is_last)
        return httpx.Response(status, headers=fields, stream=body, extensions={"reason_phrase": reason})

    def close(self) -> None:
        self._is_closed = True
        for connections in list(self._idle.values()):
            while connections:
                connections.pop().close()

    def release(self, connection: "_Connection") -> None:
        """Accept a connection whose answer was received completely."""
        connection.check_end_of_answer()
        connection.idle_since = time.monotonic()
        if self._is_closed:
            connection.close()
        else:
            self._idle[connection.origin].append(connection)

    def _connection(self, request: httpx.Request) -> "_Connection":
        idle = self._idle[request.url.netloc]
        timeouts = request.extensions["timeout"]
        while True:
            try:
                # A single operation, so that no two threads get the same connection.
                connection = idle.pop()
            except IndexError:
                return _Connection(request.url, timeouts)
            if connection.is_usable():
                connection.set_timeouts(timeouts)
                return connection
            connection.close()


class _Body(httpx.SyncByteStream):
    def __init__(
        self, transport: LeanTransport, connection: "_Connection", pieces: Iterator[bytes], is_last: bool
    ) -> None:
        self._transport, self._connection, self._pieces, self._is_last = transport, connection, pieces, is_last
        self._is_complete = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        self._is_complete = True

    def close(self) -> None:
        """Close the connection if the answer was not read to its end."""
        if self._is_complete and not self._is_last:
            self._transport.release(self._connection)
        else:
            self._connection.close()


class _Connection:
    def __init__(self, url: httpx.URL, timeouts: dict[str, float | None]) -> None:
        if url.scheme != "http":
            raise httpx.UnsupportedProtocol(f"the tests' own requests use plain HTTP, not {url.scheme}")
        self.origin = url.netloc
        self.idle_since = 0.0
        try:
            self._socket = socket.create_connection((url.host, url.port or 80), timeouts["connect"])
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = select.poll()
        self._incoming.register(self._socket, select.POLLIN)
        self._received = b""
        self.set_timeouts(timeouts)

    def set_timeouts(self, timeouts: dict[str, float | None]) -> None:
        self._socket.settimeout(timeouts["read"])

    def is_usable(self) -> bool:
        """Whether an idle connection can be used: the server neither closed it nor sent anything."""
        return time.monotonic() - self.idle_since < _IDLE_SECONDS and not self._incoming.poll(0)

    def close(self) -> None:
        self._socket.close()

    def send(self, request: httpx.Request) -> None:
        fields = request.headers.raw
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
        lines += [b"%b: %b" % field for field in fields]
        head = b"\r\n".join(lines)
        if head.count(b"\n") != len(fields) or head.count(b"\r") != len(fields):
            raise httpx.LocalProtocolError("a header contains a line break")
        for piece in _with_head(head + b"\r\n\r\n", request, fields):
            try:
                self._socket.sendall(piece)
            except TimeoutError as error:
                raise httpx.WriteTimeout(str(error)) from error
            except OSError:
                # The server may answer a rejected request without reading all of it.
                return

    def receive_head(self) -> tuple[int, bytes, _Fields]:
        """The status, its reason and the header fields of the final answer."""
        while True:
            head = self._receive_to(b"\r\n\r\n")
            match = _HEAD.fullmatch(head)
            if match is None:
                raise httpx.RemoteProtocolError(f"the head of the answer is malformed: {head[:1000]!r}")
            status = int(match[1])
            if status == 101:
                raise httpx.RemoteProtocolError("the server switched to another protocol")
            if status >= 200:
                return status, match[2], _FIELDS.findall(match[3])

    def receive_body(self, method: str, status: int, fields: _Fields) -> Iterator[bytes]:
        """The pieces of the body, as RFC 9112 (section 6.3) delimits it, but never only by the end of the connection
        without an announcement.
        """
        lengths, encodings = _values(fields, b"content-length"), _values(fields, b"transfer-encoding")
        if method == "HEAD" or status in (204, 304):
            return iter(())
        if encodings == [b"chunked"] and not lengths:
            return self._receive_chunks()
        if not encodings and len(lengths) == 1 and lengths[0].isdigit():
            return self._receive_sized(int(lengths[0]))
        if not encodings and not lengths and b"close" in _values(fields, b"connection"):
            return self._receive_to_end()
        raise httpx.RemoteProtocolError(f"the answer has no valid length: {fields}")

    def check_end_of_answer(self) -> None:
        if self._received:
            self.close()
            raise httpx.RemoteProtocolError(f"the answer is longer than announced: {self._received[:1000]!r}")

    def _receive_chunks(self) -> Iterator[bytes]:
        while True:
            line = self._receive_to(b"\r\n")
            match = _CHUNK_SIZE.fullmatch(line)
            if match is None:
                raise httpx.RemoteProtocolError(f"the size of a chunk is malformed: {line[:100]!r}")
            if not (size := int(match[1], 16)):
                break
            yield from self._receive_sized(size)
            if self._receive_to(b"\r\n") != b"\r\n":
                raise httpx.RemoteProtocolError("a chunk is longer than its size")
        while (line := self._receive_to(b"\r\n")) != b"\r\n":
            if _FIELDS.fullmatch(line) is None:
                raise httpx.RemoteProtocolError(f"a trailer field is malformed: {line[:1000]!r}")

    def _receive_sized(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._received:
                self._receive_more(f"{size} bytes before the end of the body")
            piece, self._received = self._received[:size], self._received[size:]
            size -= len(piece)
            yield piece

    def _receive_to_end(self) -> Iterator[bytes]:
        piece, self._received = self._received or self._receive(), b""
        while piece:
            yield piece
            piece = self._receive()

    def _receive_to(self, end: bytes) -> bytes:
        """The received bytes up to `end`, inclusive."""
        while (at := self._received.find(end)) < 0:
            if len(self._received) > _LARGEST_HEAD:
                raise httpx.RemoteProtocolError(f"the answer does not contain {end!r}")
            self._receive_more("without sending a complete answer")
        at += len(end)
        found, self._received = self._received[:at], self._received[at:]
        return found

    def _receive_more(self, missing: str) -> None:
        piece = self._receive()
        if not piece:
            raise httpx.RemoteProtocolError(f"the server closed the connection {missing}")
        self._received += piece

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(_RECEIVED_AT_ONCE)
        except TimeoutError as error:
            raise httpx.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error


def _values(fields: _Fields, name: bytes) -> list[bytes]:
    """The elements of all fields with this name."""
    lists = [value for key, value in fields if key.lower() == name]
    return [part.strip().lower() for value in lists for part in value.split(b",")]


def _with_head(head: bytes, request: httpx.Request, fields: _Fields) -> Iterator[bytes]:
    """The head and the body, in a single piece if the body is in memory."""
    assert isinstance(request.stream, Iterable)
    if isinstance(request.stream, httpx.ByteStream):
        yield head + b"".join(request.stream)
        return
    yield head
    if b"chunked" in _values(fields, b"transfer-encoding"):
        for piece in request.stream:
            if piece:
                yield b"%x\r\n%b\r\n" % (len(piece), piece)
        yield b"0\r\n\r\n"
    else:
        yield from request.stream
