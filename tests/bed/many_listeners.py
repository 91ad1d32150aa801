"""Many live streams of one hub on raw sockets: a thousand HTTP clients would need more memory than the hub."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.bed.event_streams import STREAM

_CONNECT_AT_ONCE = 50


@dataclass
class ManyListeners:
    """Follows a stream of events with many connections."""

    url: str
    path: str
    token: str
    _streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(default_factory=list)

    async def open(self, count: int) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < count + 200:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 1000, hard), hard))
        limit = asyncio.Semaphore(_CONNECT_AT_ONCE)

        async def connect() -> None:
            async with limit:
                self._streams.append(await self._connect())

        await asyncio.gather(*(connect() for _ in range(count)))

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        address = urlsplit(self.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        lines = (
            f"GET {self.path} HTTP/1.1",
            f"Host: {address.netloc}",
            f"Accept: {STREAM}",
            f"Authorization: Bearer {self.token}",
        )
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 120)
        assert b" 200 " in head.split(b"\r\n")[0], head
        return reader, writer

    async def latencies(self, cursor: int, cause: Callable[[], Awaitable[object]]) -> list[float]:
        """For each stream, the seconds between the return of `cause` and the event with this number, sorted."""
        waiting = [asyncio.create_task(_receive(reader, cursor)) for reader, _ in self._streams]
        await cause()
        since = time.monotonic()
        moments = await asyncio.wait_for(asyncio.gather(*waiting), 120)
        return sorted(moment - since for moment in moments)

    async def close(self) -> None:
        for _, writer in self._streams:
            writer.close()


async def _receive(reader: asyncio.StreamReader, cursor: int) -> float:
    await reader.readuntil(f"id: {cursor}\n".encode())
    moment = time.monotonic()
    await reader.readuntil(b"\n\n")
    return moment
