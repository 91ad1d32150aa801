"""Responses with the content of a file, whole or in part, from git or from disk.

Range requests follow RFC 9110, section 14; a request for several ranges gets the whole file, as the RFC allows.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from msgspec import Struct

from hubgate.server.access.caller import share_key_of
from hubgate.server.errors import Unavailable
from hubgate.server.http.asgi import ASGIApp, RawHeaders, Receive, Scope, Send
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.hub.git import program
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.jobs.slots import Slots

_GIT_CHUNK = 256 * 1024
_LONGEST_SILENCE = 60.0
# A compromise: smaller chunks cost more thread switches, larger ones more memory.
_DISK_CHUNK = 512 * 1024
# ASGI extension: servers that support it send the file themselves.
_PATHSEND = "http.response.pathsend"

_CONDITIONS = frozenset({b"if-match", b"if-none-match", b"if-range", b"range"})
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z", re.IGNORECASE | re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[^"]*")')


class Span(Struct, frozen=True):
    """The bytes from `start` up to, but not including, `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class FileSender(Struct, frozen=True):
    """Sends files. A client that reads nothing for `longest_stall` seconds is disconnected."""

    longest_stall: float

    def blob(
        self,
        request: HubRequest,
        slots: Slots,
        folder: Path,
        sha: str,
        size: int,
        content: bytes | None,
        headers: dict[str, str],
    ) -> ASGIApp:
        """Send a file from git; `content` is given if the file is small. Otherwise a git program runs until the client
        has read the file, and occupies one of the `slots`.
        """

        def answer(part: Span, status: int, headers: dict[str, str]) -> ASGIApp:
            if content is not None:
                return Response(content[part.start : part.end], status, headers)
            parts = _from_git(slots, share_key_of(request), folder, sha, part)
            return StreamedResponse(parts, headers, status, self.longest_stall)

        return range_or_whole(request, size, headers, answer)

    def file(self, request: HubRequest, path: Path, size: int, headers: dict[str, str]) -> ASGIApp:
        """Send a file from disk."""

        def answer(part: Span, status: int, headers: dict[str, str]) -> ASGIApp:
            if part.length == size and _PATHSEND in request.scope.get("extensions", {}):
                return _PathSendResponse(path, headers, status)
            return StreamedResponse(_from_disk(path, part), headers, status, self.longest_stall)

        return range_or_whole(request, size, headers, answer)


class WholeFile(Response):
    """A whole file that is in memory. Its headers are encoded once for all requests of the same file."""

    def __init__(self, content: bytes, encoded_headers: RawHeaders) -> None:
        super().__init__(content)
        self._encoded_headers = encoded_headers

    def raw_headers(self) -> RawHeaders:
        return self._encoded_headers


def is_plain_get(request: HubRequest) -> bool:
    """Whether a request asks for a whole file, without conditions."""
    return request.method == "GET" and _CONDITIONS.isdisjoint(request.headers.first)


def range_or_whole(
    request: HubRequest, size: int, headers: dict[str, str], answer: Callable[[Span, int, dict[str, str]], ASGIApp]
) -> ASGIApp:
    """Answer with the requested range, or the whole file. `answer` receives the span, the status and the headers."""
    headers = {**headers, "accept-ranges": "bytes"}
    if size == 0 and "range" in request.headers:
        # An empty file has no satisfiable range. An existing client requests the first byte to learn the size and does
        # not accept a 416; a range may be ignored (RFC 9110, section 14.2), and other clients ignore this header in a
        # 200.
        headers |= {"content-range": "bytes */0", "content-length": "0"}
        return Response(status_code=200, headers=headers)
    try:
        span = requested_span(request.headers.get("range"), request.headers.get("if-range"), headers["etag"], size)
    except OutOfRange:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{size}"})
    status = 200
    if span is not None:
        headers["content-range"] = f"bytes {span.start}-{span.end - 1}/{size}"
        status = 206
    part = span or Span(0, size)
    headers["content-length"] = str(part.length)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    return answer(part, status, headers)


class _PathSendResponse:
    def __init__(self, path: Path, headers: dict[str, str], status: int) -> None:
        self._path = str(path)
        self._start = {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        await send(self._start)
        await send({"type": _PATHSEND, "path": self._path})


async def _from_disk(path: Path, part: Span) -> AsyncGenerator[bytes, None]:
    descriptor = await in_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        at = part.start
        while at < part.end and (chunk := await in_thread(os.pread, descriptor, min(_DISK_CHUNK, part.end - at), at)):
            at += len(chunk)
            yield chunk
    finally:
        os.close(descriptor)


async def _read_chunk(out: asyncio.StreamReader) -> bytes:
    """Read the next chunk. Git produces output continuously, so a pause of this length means that the program hangs."""
    try:
        async with asyncio.timeout(_LONGEST_SILENCE):
            return await out.read(_GIT_CHUNK)
    except TimeoutError:
        raise Unavailable("Reading the file took too long. Try again.") from None


async def _from_git(slots: Slots, caller: str, folder: Path, sha: str, part: Span) -> AsyncGenerator[bytes, None]:
    async with slots.acquire(caller, folder.stem):
        process = await program.start(["cat-file", "blob", sha], folder)
        try:
            skip, remaining = part.start, part.length
            while remaining and (chunk := await _read_chunk(process.stdout)):
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                chunk = chunk[skip : skip + remaining]
                skip, remaining = 0, remaining - len(chunk)
                yield chunk
        finally:
            await process.kill()


class OutOfRange(Exception):
    pass


def is_not_modified(if_none_match: str | None, etag: str) -> bool:
    """Whether the client already has this version (RFC 9110, section 13.1.2)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _ETAG.findall(if_none_match)


def precondition_fails(if_match: str | None, etag: str) -> bool:
    """Whether the client asks for a version that no longer exists (RFC 9110, section 13.1.1: weak tags never match)."""
    if if_match is None or if_match.strip() == "*":
        return False
    return etag not in [given.strip() for given in if_match.split(",")]


def requested_span(header: str | None, if_range: str | None, etag: str, size: int) -> Span | None:
    """Return the requested range, or None for the whole file."""
    if header is None or (if_range is not None and if_range.strip() != etag):
        return None
    match = _RANGE.match(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, end = max(size - int(match[2]), 0), size
        if not int(match[2]):
            raise OutOfRange
    else:
        start = int(match[1])
        end = min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise OutOfRange
    return Span(start, end)
