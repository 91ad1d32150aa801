"""The proxy for outgoing requests of apps: HTTP CONNECT, and plain HTTP with a whole URL.

It listens on a socket file, which the runner shows to one sandbox. Where an app may connect is decided by `egress`, as
for every address that users supply. Only the addresses in `direct` are dialled without this check: the hub's own
address, and while requirements are installed, the operator's package index.
"""

import asyncio
import contextlib
import logging
import os
import re
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from hubgate.server.egress.client import AddressSlots, Egress
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import AddressNotAllowed, Target, parse_target

log = logging.getLogger("hubgate.spaces")

# Of one Space. The first process in its sandbox forwards no more either.
MAX_CONNECTIONS = 64
# Of one Space to one address, such as the package index: all Spaces together have 64.
MAX_PER_ADDRESS = 12
# A connection costs the hub more than the app: those beyond this rate wait, also if the app closes them at once.
CONNECTIONS_PER_SECOND, BURST = 50.0, 100.0
MAX_HEAD_BYTES = 16 * 1024
HEAD_SECONDS = 20.0
IDLE_SECONDS = 600.0
# After one side has ended, which many servers do not notice: one that hangs would fill the share of its address.
ENDED_SECONDS = 30.0
CHUNK = 64 * 1024

_REQUEST = re.compile(rb"([A-Z]{3,16}) ([\x21-\x7e]+) HTTP/1\.[01]\Z")
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*\Z")
# Set by the proxy, or meant for it.
_REPLACED = (b"connection", b"host", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"upgrade")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Refused(Exception):
    """The request is not forwarded. `status` and the message are the answer."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Request:
    target: Target
    # The bytes to send first; None for CONNECT, whose bytes follow as they are.
    head: bytes | None


@dataclass(eq=False)
class Proxy:
    """The proxy of one Space."""

    egress: Egress
    direct: frozenset[tuple[str, int]]
    ended_seconds: float = ENDED_SECONDS
    _share: AddressSlots = field(default_factory=lambda: AddressSlots(MAX_PER_ADDRESS))
    _accepting: asyncio.Task[None] | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def listen(self, path: Path) -> None:
        """Listen on a socket file in a private folder: the Space's user may use the file, and nobody else finds it."""
        listener = _listener(path)
        self._accepting = asyncio.create_task(self._accept(listener))
        # Not in the task, which may be cancelled before it begins.
        self._accepting.add_done_callback(lambda _: listener.close())

    async def close(self) -> None:
        tasks = {*self._tasks, *([self._accepting] if self._accepting else [])}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        budget, at = BURST, time.monotonic()
        while True:
            try:
                connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:
                # No more files can be opened now.
                log.warning("a connection of a Space could not be accepted: %s", error)
                await asyncio.sleep(1)
                continue
            if len(self._tasks) < MAX_CONNECTIONS:
                self._start(connection)
            else:
                connection.close()
            now = time.monotonic()
            budget, at = min(BURST, budget + (now - at) * CONNECTIONS_PER_SECOND) - 1, now
            if budget < 0:
                await asyncio.sleep(-budget / CONNECTIONS_PER_SECOND)

    def _start(self, connection: socket.socket) -> None:
        task = asyncio.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: connection.close())

    async def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MAX_HEAD_BYTES)
            try:
                await self._forward(reader, writer)
            finally:
                writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as opened:
            try:
                async with asyncio.timeout(HEAD_SECONDS):
                    request = parse_request(await _read_head(reader))
                to_reader, to_writer = await self._connect(request.target, opened)
            except (Refused, TimeoutError) as error:
                refused = error if isinstance(error, Refused) else Refused("408 Request Timeout", "No request in time.")
                await _answer(writer, refused)
                return
            if request.head is None:
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                to_writer.write(request.head)
            await _relay((reader, writer), (to_reader, to_writer), self.ended_seconds)

    async def _connect(self, target: Target, opened: contextlib.AsyncExitStack) -> Streams:
        """A connection that ends with `opened`."""
        try:
            if (target.host, target.port) not in self.direct:
                return await opened.enter_async_context(self.egress.connect(target, self._share))
            streams = await asyncio.open_connection(target.host, target.port)
        except (Unreachable, OSError) as error:
            # Not for the usual log, which an app could fill.
            log.debug("a Space could not connect to %s:%s: %s", target.host, target.port, error)
            # Blocked and unreachable addresses look the same (attack W18).
            raise Refused("502 Bad Gateway", "No answer from the address, or Spaces may not connect to it.") from None
        opened.callback(streams[1].transport.abort)
        return streams


def _listener(path: Path) -> socket.socket:
    # A process that died has left it behind.
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The path may be longer than names of sockets can be.
        name = f"/proc/self/fd/{folder}/{path.name}"
        listener.bind(name)
        os.chmod(name, 0o666)  # noqa: PTH101, S103
        listener.listen(MAX_CONNECTIONS)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    return listener


def parse_request(head: bytes) -> Request:
    first, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = _REQUEST.match(first)
    if match is None or not all(map(_HEADER.match, headers)):
        raise Refused("400 Bad Request", "This is not a request to a proxy.")
    method, address = match[1], match[2].decode("ascii")
    try:
        if method == b"CONNECT":
            # The bytes that follow are opaque, so the scheme makes no difference.
            return Request(parse_target(f"https://{address}/"), None)
        if not address.lower().startswith("http://"):
            raise Refused("400 Bad Request", "Use CONNECT, or a whole URL that begins with http://.")
        target = parse_target(address)
    except AddressNotAllowed as error:
        raise Refused("403 Forbidden", error.message) from None
    passed = [line for line in headers if line.partition(b":")[0].lower() not in _REPLACED]
    # One request for each connection: the next one may have another address.
    own = [f"Host: {target.host_header}".encode(), b"Connection: close"]
    line = b"%s %s HTTP/1.1" % (method, target.path_and_query.encode("ascii"))
    return Request(target, b"\r\n".join([line, *own, *passed]) + b"\r\n\r\n")


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refused("431 Request Header Fields Too Large", "The headers are too long.") from None
    except asyncio.IncompleteReadError:
        raise Refused("400 Bad Request", "The request is incomplete.") from None


async def _answer(writer: asyncio.StreamWriter, refused: Refused) -> None:
    body = f"hubgate: {refused}\n".encode()
    head = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HEAD_SECONDS):
            await writer.drain()
            writer.close()
            await writer.wait_closed()


async def _relay(one: Streams, other: Streams, ended_seconds: float) -> None:
    """Copy in both directions until both have ended, or nothing was sent for a while."""
    loop, seconds = asyncio.get_running_loop(), IDLE_SECONDS
    idle = asyncio.timeout(seconds)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seconds
        while data := await reader.read(CHUNK):
            idle.reschedule(loop.time() + seconds)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        seconds = ended_seconds
        idle.reschedule(loop.time() + seconds)

    tasks = [asyncio.create_task(copy(one[0], other[1])), asyncio.create_task(copy(other[0], one[1]))]
    try:
        with contextlib.suppress(TimeoutError):
            async with idle:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
