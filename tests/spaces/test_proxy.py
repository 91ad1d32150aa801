"""The proxy for outgoing requests of apps, over its socket."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

from tests.egress.farend import Names, answering, serving

from hubgate.server.egress.client import Egress
from hubgate.server.spaces.proxy import (
    BURST,
    CONNECTIONS_PER_SECOND,
    ENDED_SECONDS,
    MAX_CONNECTIONS,
    MAX_HEAD_BYTES,
    MAX_PER_ADDRESS,
    Proxy,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LOOPBACK = [ip_network("127.0.0.0/8")]


class ProxyClient:
    """A client of the proxy."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_unix_connection(self._path)

    async def send(self, request: bytes, count: int = -1) -> bytes:
        """What is answered until the end, or this many bytes of it."""
        reader, writer = await self.open()
        writer.write(request)
        async with asyncio.timeout(60):
            answer = await (reader.read() if count < 0 else reader.readexactly(count))
        writer.close()
        return answer


@contextlib.asynccontextmanager
async def proxying(
    folder: Path,
    names: dict[str, list[list[str]]] | None = None,
    *,
    upstream: str = "",
    private: bool = True,
    per_address: int = 64,
    ended_seconds: float = ENDED_SECONDS,
) -> AsyncIterator[tuple[ProxyClient, set[tuple[str, int]]]]:
    """A proxy whose resolver knows these names; its client, and the addresses that it may dial directly."""
    direct: set[tuple[str, int]] = set()
    egress = Egress(LOOPBACK if private else [], upstream, resolve=Names(names or {}))
    egress.limit_per_address(per_address)
    # A set that tests add to: a frozen set would need the port in advance.
    proxy = Proxy(egress, direct, ended_seconds)  # type: ignore[arg-type]
    await proxy.listen(folder / "proxy.sock")
    try:
        yield ProxyClient(folder / "proxy.sock"), direct
    finally:
        await proxy.close()
        egress.close()


async def test_tunnel_is_opaque(tmp_path: Path) -> None:
    seen: list[bytes] = []
    async with proxying(tmp_path, {"api.example": [["127.0.0.1"]]}) as (asking, _):
        with serving(answering(OK, seen)) as server:
            reader, writer = await asking.open()
            writer.write(b"CONNECT api.example:%d HTTP/1.1\r\nHost: x\r\n\r\n" % server.port)
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connected\r\n\r\n"
            writer.write(b"GET /a HTTP/1.1\r\nHost: any\r\nX: 1\r\n\r\n")
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
    assert seen == [b"GET /a HTTP/1.1\r\nHost: any\r\nX: 1\r\n\r\n"]


async def test_plain_request_is_sent_to_the_host_of_its_url(tmp_path: Path) -> None:
    seen: list[bytes] = []
    async with proxying(tmp_path, {"api.example": [["127.0.0.1"]]}) as (asking, _):
        with serving(answering(OK, seen)) as server:
            request = (
                b"POST http://api.example:%d/a?b=c HTTP/1.1\r\nHost: internal.example\r\nConnection: keep-alive\r\n"
            )
            more = b"Proxy-Authorization: x\r\nX-One: 1\r\nContent-Length: 2\r\n\r\n{}"
            assert await asking.send(request % server.port + more, len(OK)) == OK
            port = server.port
    assert seen == [
        b"POST /a?b=c HTTP/1.1\r\nHost: api.example:%d\r\nConnection: close\r\nX-One: 1\r\nContent-Length: 2\r\n\r\n{}"
        % port
    ]


async def test_only_the_hubs_own_address_is_dialled_without_a_check(tmp_path: Path) -> None:
    async with proxying(tmp_path, private=False) as (asking, direct):
        with serving(answering(OK)) as server, serving(answering(OK)) as other:
            direct.add(("127.0.0.1", server.port))
            request = b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n"
            assert await asking.send(request % server.port, len(OK)) == OK
            assert (await asking.send(request % other.port)).startswith(b"HTTP/1.1 502 ")
            assert other.connections == 0


async def test_name_that_leads_to_a_private_address_is_refused(tmp_path: Path) -> None:
    names = {"rebound.example": [["127.0.0.1"]], "metadata.example": [["169.254.169.254"]]}
    async with proxying(tmp_path, names, private=False) as (asking, _):
        answers = {
            await asking.send(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % name.encode())
            for name in (*names, "unknown.example")
        }
        # Blocked and unknown look the same.
        (answer,) = answers
        assert answer.startswith(b"HTTP/1.1 502 ")


async def test_requests_that_are_not_for_a_proxy_are_refused(tmp_path: Path) -> None:
    async with proxying(tmp_path) as (asking, _):
        for request, status in {
            b"GET / HTTP/1.1\r\n\r\n": b"400",
            b"GET https://x.example/ HTTP/1.1\r\n\r\n": b"400",
            b"nonsense\r\n\r\n": b"400",
            b"CONNECT x.example:443 HTTP/1.1\r\nbad header\r\n\r\n": b"400",
            b"CONNECT x.example:443 HTTP/1.1\r\nX: a\nb\r\n\r\n": b"400",
            b"CONNECT x.example:22 HTTP/1.1\r\n\r\n": b"403",
            b"CONNECT user@x.example:443 HTTP/1.1\r\n\r\n": b"403",
            b"CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n": b"403",
            b"CONNECT x.example:443 HTTP/1.1\r\nX: %s" % (b"a" * MAX_HEAD_BYTES): b"431",
        }.items():
            assert (await asking.send(request)).split(b" ")[1] == status, request[:60]


async def test_connections_of_a_space_are_limited(tmp_path: Path) -> None:
    async with proxying(tmp_path) as (asking, _):
        opened = [await asking.open() for _ in range(MAX_CONNECTIONS)]
        reader, writer = await asking.open()
        assert await reader.read() == b""
        for _, each in [*opened, (reader, writer)]:
            each.close()


async def test_connections_beyond_a_rate_wait(tmp_path: Path) -> None:
    """Otherwise an app that opens and closes connections in a loop would keep the process of all Spaces busy."""

    def flood() -> bytes:
        for _ in range(int(BURST) + 79):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(tmp_path / "proxy.sock"))
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(tmp_path / "proxy.sock"))
            peer.send(b"nonsense\r\n\r\n")
            return peer.recv(12)

    async with proxying(tmp_path):
        began = time.monotonic()
        assert await asyncio.to_thread(flood) == b"HTTP/1.1 400"
        assert time.monotonic() - began > 79 / CONNECTIONS_PER_SECOND - 0.1


async def test_connections_of_all_spaces_to_one_address_are_limited(tmp_path: Path) -> None:
    """Spaces must not flood a victim together, as webhooks must not (attack W29)."""
    names = {"api.example": [["127.0.0.1"]], "www.example": [["127.0.0.1"]]}
    async with proxying(tmp_path, names, per_address=1) as (asking, _):
        with serving(answering(OK)) as server:
            reader, writer = await asking.open()
            writer.write(b"CONNECT api.example:%d HTTP/1.1\r\n\r\n" % server.port)
            await reader.readuntil(b"\r\n\r\n")
            request = b"GET http://www.example:%d/ HTTP/1.1\r\n\r\n" % server.port
            assert (await asking.send(request)).startswith(b"HTTP/1.1 502 ")
            writer.close()
            assert await reader.read() == b""
            assert await asking.send(request, len(OK)) == OK


async def test_one_space_cannot_take_all_connections_to_an_address(tmp_path: Path) -> None:
    """Others could not install anything while it is connected to the package index."""
    names = {"index.example": [["127.0.0.1"]]}
    async with proxying(tmp_path, names) as (asking, _):
        with serving(answering(OK)) as server:
            connect = b"CONNECT index.example:%d HTTP/1.1\r\n\r\n" % server.port
            answers = []
            opened = [await asking.open() for _ in range(MAX_PER_ADDRESS + 1)]
            for reader, writer in opened:
                writer.write(connect)
                answers.append((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
            assert answers == [b"200"] * MAX_PER_ADDRESS + [b"502"]
            for _, writer in opened:
                writer.close()


async def test_connection_ends_if_the_server_does_not_notice_that_the_app_has_left(tmp_path: Path) -> None:
    """After a timeout of its client an app tries again. It must reach the server once that no longer hangs."""
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        async with proxying(tmp_path, {"api.example": [["127.0.0.1"]]}, ended_seconds=0.1) as (asking, _):
            connect = b"CONNECT api.example:%d HTTP/1.1\r\n\r\n" % hanging.getsockname()[1]
            accepted = []
            for _ in range(MAX_PER_ADDRESS + 1):
                reader, writer = await asking.open()
                writer.write(connect)
                assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connected\r\n\r\n"
                accepted.append((await asyncio.to_thread(hanging.accept))[0])
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                writer.close()
                await reader.read()
            for each in accepted:
                each.close()


async def test_operators_proxy_is_used(tmp_path: Path) -> None:
    connected = b"HTTP/1.1 200 Connected\r\n\r\n"
    seen: list[bytes] = []
    with serving(answering(connected, seen)) as upstream:
        async with proxying(
            tmp_path, {"api.example": [["127.0.0.1"]]}, upstream=f"http://127.0.0.1:{upstream.port}"
        ) as (asking, _):
            reader, writer = await asking.open()
            writer.write(b"CONNECT api.example:443 HTTP/1.1\r\n\r\n")
            assert await reader.readexactly(len(connected)) == connected
            writer.close()
    # By address: the proxy must not resolve the name again.
    assert seen[0].startswith(b"CONNECT 127.0.0.1:443 HTTP/1.1\r\n")
