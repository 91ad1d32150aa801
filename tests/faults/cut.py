"""A connection to PostgreSQL that can be cut or slow: a proxy between a process and the server, on a Unix socket."""

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SOCKET = ".s.PGSQL.5432"


class CutConnection:
    """While cut, nothing is forwarded and nothing is closed, as when packets are lost."""

    def __init__(self, server_folder: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="hubgate-cut-", dir="/tmp"))
        # Seconds that each message is delayed, in both directions.
        self.delay = 0.0
        self._server = server_folder / _SOCKET
        self._loop = asyncio.new_event_loop()
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._listener = self._run(asyncio.start_unix_server(self._connected, self.folder / _SOCKET))

    def cut(self) -> None:
        self._loop.call_soon_threadsafe(self._is_open.clear)

    def restore(self) -> None:
        self._loop.call_soon_threadsafe(self._is_open.set)

    def close(self) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()
        shutil.rmtree(self.folder)

    def _run(self, work: object) -> object:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)  # type: ignore[arg-type]

    async def _close(self) -> None:
        assert isinstance(self._listener, asyncio.Server)
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        try:
            await self._is_open.wait()
            server_reader, server_writer = await asyncio.open_unix_connection(self._server)
            writers.append(server_writer)
            there, back = self._forward(reader, server_writer), self._forward(server_reader, writer)
            both = [asyncio.ensure_future(there), asyncio.ensure_future(back)]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in both:
                    each.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for each_writer in writers:
                each_writer.transport.abort()
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await asyncio.sleep(self.delay)
                await self._is_open.wait()
                writer.write(data)
                await writer.drain()
            await self._is_open.wait()


@contextmanager
def cut_connection(server_folder: Path) -> Iterator[CutConnection]:
    connection = CutConnection(server_folder)
    try:
        yield connection
    finally:
        connection.close()
