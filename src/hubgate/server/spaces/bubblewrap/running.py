"""An app that was started in a sandbox."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from hubgate.server.spaces.bubblewrap.sandbox import Sandbox
from hubgate.server.spaces.runner import Exit, NotListening, P, Use

MESSAGE_BYTES = 1024
# Between reading messages, which an app could send without end.
MESSAGE_SECONDS = 0.02


class RunningApp:
    """`resources` are closed when the app has ended."""

    def __init__(self, sandbox: Sandbox, control: socket.socket, path: Path, resources: ExitStack) -> None:
        self._sandbox, self._path, self._resources = sandbox, path, resources
        self._control = control
        self._control.setblocking(False)
        # Ports on which the app listens instead of its own, as it says.
        self._elsewhere = ""
        self._listening = asyncio.Event()
        self._messages = asyncio.create_task(self._read_messages())
        self._ended = asyncio.create_task(self._end())

    def on_end(self, callback: Callable[[], None]) -> None:
        self._ended.add_done_callback(lambda _: callback())

    async def until_listening(self, seconds: float) -> None:
        listening = asyncio.create_task(self._listening.wait())
        try:
            await asyncio.wait([listening, self._ended], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            listening.cancel()
        if self._listening.is_set():
            return
        if self._ended.done():
            reason = self._ended.result().reason
            raise NotListening(f"The app ended before it listened on its port. {reason}", has_ended=True)
        found = f" It listens on port {self._elsewhere} instead." if self._elsewhere else ""
        raise NotListening(
            f"The app did not listen on the port in PORT within {seconds:.0f} s.{found} Listen on $HOST:$PORT.",
            has_ended=False,
        )

    async def connect(self, protocol: Callable[[], P]) -> P:
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            name = f"/proc/self/fd/{folder}/{self._path.name}"
            return (await asyncio.get_running_loop().create_unix_connection(protocol, name))[1]
        finally:
            os.close(folder)

    async def wait(self) -> Exit:
        return await asyncio.shield(self._ended)

    async def stop(self, grace: float) -> Exit:
        try:
            if grace > 0 and not self._ended.done():
                with contextlib.suppress(OSError, TimeoutError):
                    self._control.send(b"stop\n")
                    async with asyncio.timeout(grace):
                        return await self.wait()
        finally:
            # Also if the caller is cancelled: nothing else would end the app.
            self._sandbox.kill_soon()
        return await self.wait()

    def processes(self) -> set[int]:
        """The ids of everything in the sandbox, as the machine counts them."""
        return self._sandbox.group.processes()

    def use(self) -> Use:
        return self._sandbox.group.use()

    async def _end(self) -> Exit:
        result = await self._sandbox.wait()
        self._messages.cancel()
        await asyncio.gather(self._messages, return_exceptions=True)
        self._resources.close()
        return result

    async def _read_messages(self) -> None:
        """Messages of `inside.py`, which the app may forge."""
        rest = b""
        while data := await asyncio.get_running_loop().sock_recv(self._control, MESSAGE_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"listening":
                    # The last message.
                    self._listening.set()
                    return
                if line.startswith(b"elsewhere "):
                    ports = line.removeprefix(b"elsewhere ").decode("ascii", "replace")
                    self._elsewhere = "".join(each for each in ports if each in "0123456789,")[:60]
            rest = rest[-MESSAGE_BYTES:]
            await asyncio.sleep(MESSAGE_SECONDS)
