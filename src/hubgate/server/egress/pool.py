"""Connects to checked addresses and pools idle connections for reuse."""

import asyncio
import base64
import contextlib
import functools
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from hubgate.server.egress.addresses import Address
from hubgate.server.egress.connection import MAX_HEAD_BYTES, Connection
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import Target

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 20.0
MAX_IDLE = 1024
# The same as client.MAX_PER_ADDRESS, so that all connections of a busy receiver are reused.
MAX_IDLE_PER_KEY = 64


class Key(Struct, frozen=True):
    """The properties that a reused connection must match. The certificate was checked for this name only."""

    host: str
    # As text: the hash of an address object is slow.
    address: str
    port: int
    tls: bool

    @classmethod
    def of(cls, target: Target, address: Address) -> "Key":
        return cls(target.host, str(address), target.port, target.is_tls)


class Pool:
    def __init__(self, proxy: str = "", tls: ssl.SSLContext | None = None) -> None:
        self._proxy = urlsplit(proxy) if proxy else None
        self._tls = tls
        # Keys, and the connections of each key, are ordered by last use, the most recent last.
        self._idle: OrderedDict[Key, list[tuple[Connection, float]]] = OrderedDict()
        self._count = 0
        self._swept_at = 0.0

    def take(self, key: Key) -> Connection | None:
        """Take the most recently used idle connection to an address that the caller has checked."""
        oldest = time.monotonic() - IDLE_SECONDS
        while idle := self._idle.get(key):
            connection, used_at = idle.pop()
            self._count_removal(key)
            if connection.is_reusable and used_at >= oldest:
                return connection
            connection.close()
        return None

    async def dial(self, target: Target, address: Address) -> Connection:
        async with _connecting(address):
            return await self._connect(target, address)

    async def open_stream(self, target: Target, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection without TLS, which is not pooled."""
        async with _connecting(address):
            if self._proxy is None:
                return await asyncio.open_connection(str(address), target.port)
            loop = asyncio.get_running_loop()
            transport = await self._reach_through_proxy(self._proxy, target, address)
            reader = asyncio.StreamReader()
            protocol = asyncio.StreamReaderProtocol(reader)
            transport.set_protocol(protocol)
            protocol.connection_made(transport)
            return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    def put_back(self, key: Key, connection: Connection) -> None:
        if not connection.is_reusable:
            return
        now = time.monotonic()
        self._idle.setdefault(key, []).append((connection, now))
        self._idle.move_to_end(key)
        self._count += 1
        if len(self._idle[key]) > MAX_IDLE_PER_KEY:
            self._drop_first(key)
        if self._count > MAX_IDLE:
            self._drop_first(next(iter(self._idle)))
        if now - self._swept_at > IDLE_SECONDS / 4:
            self._swept_at = now
            self._drop_stale(now - IDLE_SECONDS)

    def close(self) -> None:
        while self._idle:
            self._drop_first(next(iter(self._idle)))

    def _drop_stale(self, oldest: float) -> None:
        for key in list(self._idle):
            while (idle := self._idle.get(key)) and (idle[0][1] < oldest or not idle[0][0].is_reusable):
                self._drop_first(key)

    def _drop_first(self, key: Key) -> None:
        connection, _ = self._idle[key].pop(0)
        self._count_removal(key)
        connection.close()

    def _count_removal(self, key: Key) -> None:
        self._count -= 1
        if not self._idle[key]:
            del self._idle[key]

    async def _connect(self, target: Target, address: Address) -> Connection:
        tls = (self._tls or system_tls()) if target.is_tls else None
        # The certificate must match the name, not the address.
        name = target.host if tls else None
        loop = asyncio.get_running_loop()
        if self._proxy is None:
            _, connection = await loop.create_connection(
                Connection, str(address), target.port, ssl=tls, server_hostname=name
            )
            return connection
        return await self._through_proxy(target, address, tls, name)

    async def _through_proxy(
        self, target: Target, address: Address, tls: ssl.SSLContext | None, name: str | None
    ) -> Connection:
        if self._proxy is None:
            raise Unreachable("no proxy")
        loop = asyncio.get_running_loop()
        transport = await self._reach_through_proxy(self._proxy, target, address)
        try:
            connection = Connection()
            transport.set_protocol(connection)
            upgraded = await loop.start_tls(transport, connection, tls, server_hostname=name) if tls else transport
        except BaseException:
            transport.abort()
            raise
        # None if the peer disconnected during the handshake: the exchange then finds no transport.
        if upgraded is not None:
            connection.connection_made(upgraded)
        return connection

    async def _reach_through_proxy(self, proxy: SplitResult, target: Target, address: Address) -> asyncio.Transport:
        """Connect through the operator's proxy, by address: the proxy must not resolve the name again."""
        loop = asyncio.get_running_loop()
        transport, response = await loop.create_connection(_ConnectResponse, proxy.hostname or "", proxy.port or 3128)
        try:
            transport.write(_connect_request(address, target.port, proxy.username, proxy.password))
            await response.succeeded
        except BaseException:
            transport.abort()
            raise
        return transport


@contextlib.asynccontextmanager
async def _connecting(address: Address) -> AsyncIterator[None]:
    """The deadline of a connection, and its errors as Unreachable."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            yield
    except TimeoutError:
        raise Unreachable(f"{address} did not answer within {CONNECT_SECONDS:.0f} s") from None
    except (OSError, ssl.SSLError, ssl.CertificateError) as error:
        raise Unreachable(f"{address}: {error}") from error


class _ConnectResponse(asyncio.Protocol):
    """Waits for the proxy's response to CONNECT. No data may follow the response before the hub sends its request."""

    def __init__(self) -> None:
        self.succeeded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self.succeeded.done():
            return
        if self._head.endswith(b"\r\n\r\n") and self._head.split(b" ", 2)[1:2] == [b"200"]:
            self.succeeded.set_result(None)
        elif b"\r\n\r\n" in self._head or len(self._head) > MAX_HEAD_BYTES:
            self.succeeded.set_exception(Unreachable(f"the proxy refused: {self._head[:100]!r}"))

    def connection_lost(self, _: Exception | None) -> None:
        if not self.succeeded.done():
            self.succeeded.set_exception(Unreachable("the proxy closed the connection"))


@functools.cache
def system_tls() -> ssl.SSLContext:
    """Created at first use: loading the system's certificates takes longer than starting the hub."""
    return ssl.create_default_context()


def _connect_request(address: Address, port: int, user: str | None, password: str | None) -> bytes:
    host = f"[{address}]" if address.version == 6 else str(address)
    lines = [f"CONNECT {host}:{port} HTTP/1.1", f"Host: {host}:{port}"]
    if user is not None:
        pair = base64.b64encode(f"{unquote(user)}:{unquote(password or '')}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {pair}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
