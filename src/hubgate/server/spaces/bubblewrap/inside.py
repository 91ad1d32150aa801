"""The first process inside a sandbox. Runs as a program: `python -I -S inside.py SPEC ...`.

The arguments are descriptors. SPEC has a JSON object, written by `runner.py` and `requirements.py`; after it come
CONTROL LISTENER SOURCE to run an app, CONTROL ARCHIVE to install requirements, and ARCHIVE to unpack them.

It prepares the work folder, starts the app, and forwards connections: from the hub's socket to the app's port, and from
the proxy's port to the hub's proxy. Everything in the sandbox runs as the same user, so nothing here is out of the
app's reach: the hub treats all that it receives from here as sent by the app.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tarfile
from collections.abc import Awaitable, Callable
from itertools import takewhile
from pathlib import Path
from typing import Any

MAX_CONNECTIONS = 64
MAX_MEMBERS = 200_000
CHUNK = 65536
POLL_SECONDS = 0.05

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def say(text: str) -> None:
    print(f"hubgate: {text}", flush=True)  # noqa: T201


def unpack(descriptor: int, folder: str, max_members: int = MAX_MEMBERS) -> bool:
    """Unpack an archive; links may not point out of the folder."""
    count = 0
    try:
        with os.fdopen(descriptor, "rb") as file, tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                count += 1 + missing_folders(Path(f"{folder}/{member.name}"))
                if count > max_members:
                    say(f"there are more than {max_members:,} files")
                    return False
                if member.isdir() or member.isreg() or member.issym() or member.islnk():
                    archive.extract(member, folder, set_attrs=True, filter="data")
    except OSError as error:
        say(f"the files do not fit into {folder}: {error.strerror or error}")
        return False
    except tarfile.TarError as error:
        say(f"the files cannot be unpacked: {error}")
        return False
    return True


def missing_folders(path: Path) -> int:
    """How many folders are created for a file. An archive need not name them: a forged one of the allowed size could
    create millions, which the file system has no room for.
    """
    return sum(1 for _ in takewhile(lambda folder: not folder.exists(), path.parents))


def pack(folder: str, descriptor: int) -> bool:
    try:
        with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w|") as archive:
            archive.add(folder, arcname=".")
    except OSError:
        # The hub stopped reading and says why.
        return False
    return True


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class Forwarder:
    """Accepts connections on a socket and forwards each to another address."""

    def __init__(self, listener: socket.socket, connect: Connect) -> None:
        self.listener, self.connect = listener, connect
        self.slots = asyncio.Semaphore(MAX_CONNECTIONS)

    async def start(self) -> None:
        open_server = asyncio.start_unix_server if self.listener.family == socket.AF_UNIX else asyncio.start_server
        self.server = await open_server(self.forward, sock=self.listener)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self.slots:
            try:
                to_reader, to_writer = await self.connect()
            except OSError:
                writer.close()
                return
            try:
                await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))
            finally:
                writer.close()
                to_writer.close()


class Control:
    """The connection to the hub: it sends a line `stop`, and gets `listening`."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.socket.setblocking(False)

    def send(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self.socket.send(text.encode() + b"\n")

    async def until_stop(self) -> None:
        """Wait until the hub asks to stop, or has died."""
        await asyncio.get_running_loop().sock_recv(self.socket, 16)


def listening_ports() -> list[int]:
    """The ports on which something in this sandbox listens."""
    found = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), Path(path).open() as file:
            for line in list(file)[1:]:
                local, _, state = line.split()[1:4]
                if state == "0A":
                    found.add(int(local.rpartition(":")[2], 16))
    return sorted(found)


async def report_listening(port: int, proxy_port: int, control: Control) -> None:
    reported: list[int] = []
    while port not in (ports := listening_ports()):
        others = [each for each in ports if each != proxy_port][:8]
        if others != reported:
            control.send("elsewhere " + ",".join(map(str, others)))
            reported = others
        await asyncio.sleep(POLL_SECONDS)
    control.send("listening")


def become_first_to_kill() -> None:
    """When memory runs out, the kernel kills the app before this program, which reports it."""
    Path("/proc/self/oom_score_adj").write_text("500")


async def run_app(spec: dict[str, Any], control: Control, listener: int | None) -> int:
    loop = asyncio.get_running_loop()
    # At the end, connections are cut: that is not worth a line in the app's log.
    loop.set_exception_handler(lambda *_: None)
    proxy = socket.socket()
    proxy.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    proxy.bind(("127.0.0.1", spec["proxy_port"]))
    proxy.listen(128)
    await Forwarder(proxy, lambda: asyncio.open_unix_connection(spec["proxy"])).start()
    if listener is not None:
        await Forwarder(
            socket.socket(fileno=listener), lambda: asyncio.open_connection("localhost", spec["port"])
        ).start()
    process = await asyncio.create_subprocess_exec(
        *spec["command"],
        env=spec["environment"],
        cwd=spec["folder"],
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=become_first_to_kill,
    )
    tasks = []
    if listener is not None:
        tasks.append(loop.create_task(report_listening(spec["port"], spec["proxy_port"], control)))
    tasks.append(loop.create_task(end_on_stop(control, process.pid)))
    return await process.wait()


async def end_on_stop(control: Control, process: int) -> None:
    await control.until_stop()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGTERM)


def report_full(folder: str) -> None:
    state = os.statvfs(folder)
    if state.f_bavail * state.f_frsize < 4096 or state.f_favail == 0:
        say(f"the work folder is full ({state.f_blocks * state.f_frsize // 2**20:,} MiB)")


def main() -> int:
    with os.fdopen(int(sys.argv[1])) as file:
        spec = json.load(file)
    if spec["mode"] == "unpack":
        return 0 if unpack(int(sys.argv[2]), spec["folder"]) else 1
    control = Control(int(sys.argv[2]))
    for folder in spec.get("folders", ()):
        Path(folder).mkdir(parents=True)
    for path, text in spec.get("files", {}).items():
        Path(path).write_text(text)
    if spec["mode"] == "run" and not unpack(int(sys.argv[4]), spec["folder"]):
        return 1
    status = asyncio.run(run_app(spec, control, int(sys.argv[3]) if spec["mode"] == "run" else None))
    if status:
        report_full(spec["full"])
    elif spec["mode"] == "build" and not pack(spec["pack"], int(sys.argv[3])):
        return 1
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    # Not sys.exit: threads and connections of the event loop are of no interest any more.
    result = main()
    sys.stdout.flush()
    os._exit(result)
