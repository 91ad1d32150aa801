"""A running program whose standard streams are sockets, like asyncio's subprocesses, but started with vfork.

uvloop starts programs with fork, which copies the page tables of the whole server: 6 ms of CPU time for a git program
that otherwise takes 2 ms. `subprocess.Popen` uses vfork.

Sockets, not pipes: uvloop closes the descriptor of a pipe, and later closes the file object that it was given, which
closes the same number again. By then it may belong to a file that another thread has opened. From a socket object it
takes the descriptor away.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Process:
    """A program in a separate group, so that Ctrl-C reaches only our process. Not in a separate session: Linux gives
    each session an equal share of the processors (autogroups), and priorities count only within a session.
    """

    @classmethod
    async def start(cls, arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> "Process":
        """Raises FileNotFoundError if the program or the folder does not exist. The caller must call `kill` in all
        cases.
        """
        pairs = [socket.socketpair() for _ in range(3)]
        with contextlib.ExitStack() as their_ends, contextlib.ExitStack() as on_failure:
            for _, their_end in pairs:
                their_ends.enter_context(their_end)
            streams = await _connected([our_end for our_end, _ in pairs])
            on_failure.callback(_abort, streams)
            # From here on without a pause, so that a program always has an owner.
            stdin, stdout, stderr = (their_end.fileno() for _, their_end in pairs)
            popen = subprocess.Popen(  # noqa: ASYNC220 -- blocks for a millisecond
                arguments, cwd=folder, env=env, stdin=stdin, stdout=stdout, stderr=stderr, process_group=0
            )
            on_failure.enter_context(popen)
            on_failure.callback(popen.kill)
            process = cls(popen, streams)
            on_failure.pop_all()
            return process

    def __init__(self, popen: "subprocess.Popen[bytes]", streams: Sequence[_Stream]) -> None:
        self._popen, self._streams = popen, streams
        (_, self.stdin), (self.stdout, _), (self.stderr, _) = streams
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._watch()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def kill(self) -> None:
        """Kill the program and the processes in its group, and close its streams."""
        try:
            if self.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
                await self.wait()
        finally:
            _abort(self._streams)

    def _watch(self) -> None:
        """Notice the exit, without a thread where the system allows it: not on macOS, on Linux before 5.3 and in some
        sandboxes.
        """
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
            return

        def collect() -> None:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
            self._exited.set_result(self._popen.wait())

        try:
            self._loop.add_reader(descriptor, collect)
        except BaseException:
            os.close(descriptor)
            raise

    def _wait_in_thread(self) -> None:
        status = self._popen.wait()
        # The loop may have been closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._exited.set_result, status)


async def _connected(sockets: Sequence[socket.socket]) -> list[_Stream]:
    """Connect the sockets to the event loop. To the end, even if the caller is cancelled: a socket that is half
    connected has no owner.
    """
    connecting = asyncio.ensure_future(_connect(sockets))
    try:
        return await asyncio.shield(connecting)
    except BaseException:
        while not connecting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({connecting})
        if not connecting.cancelled() and not connecting.exception():
            _abort(connecting.result())
        raise


async def _connect(sockets: Sequence[socket.socket]) -> list[_Stream]:
    streams: list[_Stream] = []
    try:
        for each in sockets:
            streams.append(await asyncio.open_unix_connection(sock=each))  # noqa: PERF401 -- closed after a failure
    except BaseException:
        _abort(streams)
        for each in sockets[len(streams) :]:
            each.close()
        raise
    return streams


def _abort(streams: Sequence[_Stream]) -> None:
    for _, writer in streams:
        # After `close`, asyncio drops the transport once its data is sent; `abort` would then raise AttributeError.
        if not writer.is_closing() or writer.transport.get_write_buffer_size():
            writer.transport.abort()
