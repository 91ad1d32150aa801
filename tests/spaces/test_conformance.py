"""The specification of a runner: every runner passes all of it."""

import asyncio
import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from tests.spaces.bed import LIMITS, SERVER, START_SECONDS, archive, get, spaces_bed

from hubgate.server.egress.resolve import Unreachable
from hubgate.server.spaces.bubblewrap.runner import BubblewrapRunner
from hubgate.server.spaces.bubblewrap.running import RunningApp
from hubgate.server.spaces.runner import MIB, Environment, LimitsTogether, NotListening


async def test_this_machine_can_run_spaces(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        assert bed.runner.problems() == []


async def test_app_serves_and_ends_when_asked(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        app = bed.with_code(SERVER, environment={"SECRET": "s3", "PORT": "1", "PYTHONPATH": "/nowhere"})
        running = await bed.start(app)
        await running.until_listening(START_SECONDS)
        assert await asyncio.gather(*(get(running) for _ in range(8))) == [b"hello"] * 8
        environment = json.loads(await get(running, "/environment"))
        assert environment["SECRET"] == "s3"
        # The port of the sandbox stays the same.
        assert environment["PORT"] == environment["GRADIO_SERVER_PORT"] != "1"
        assert "HUBGATE_SECRET_KEY" not in environment
        assert "PATH" in environment
        use = running.use()
        assert use.processes > 1
        assert 5 * MIB < use.memory < LIMITS.memory
        assert use.cpu_seconds > 0
        assert (await running.stop(60)).status == 128 + signal.SIGTERM
        with pytest.raises(OSError):
            await running.connect(asyncio.Protocol)


async def test_app_can_import_hubgate(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        code = "import hubgate, hubgate.receiver, httpx, uvicorn, json; print(json.dumps(hubgate.Hub.__name__))"
        assert await bed.printed(code) == "Hub"


async def test_app_that_ends_is_reported(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        result = await bed.ended("print('one'); print('two', flush=True); raise SystemExit(3)")
        assert (result.status, result.reason) == (3, "It ended with exit status 3.")
        assert bed.lines == ["one", "two"]


async def test_app_that_ends_before_it_listens_is_reported(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        running = await bed.start(bed.with_code("raise SystemExit(1)"))
        with pytest.raises(NotListening, match=r"ended before it listened on its port\. It ended with exit status 1"):
            await running.until_listening(START_SECONDS)


async def test_app_that_listens_elsewhere_is_reported(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        code = """
            import socket, time
            s = socket.create_server(("127.0.0.1", 5555)); print("listens", flush=True); time.sleep(600)
        """
        running = await bed.start(bed.with_code(code))
        async with asyncio.timeout(START_SECONDS):
            while bed.lines != ["listens"]:
                await asyncio.sleep(0.01)
        with pytest.raises(NotListening, match="listens on port 5555 instead"):
            await running.until_listening(5)


async def test_app_that_ignores_sigterm_is_killed_after_its_grace(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + "\n".join(
        line[4:] for line in SERVER.splitlines()
    )
    async with spaces_bed(tmp_path) as bed:
        running = await bed.serving(code)
        async with asyncio.timeout(60):
            assert (await running.stop(0.5)).status != 0


async def test_app_ends_when_stopping_it_is_cancelled(tmp_path: Path) -> None:
    """As after the loss of a lease: nothing else would end it."""
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + dedent(SERVER)
    async with spaces_bed(tmp_path) as bed:
        running = await bed.serving(code)
        stopping = asyncio.create_task(running.stop(60))
        await asyncio.sleep(0.1)
        stopping.cancel()
        async with asyncio.timeout(60):
            assert (await running.wait()).status != 0


async def test_stopping_ends_processes_that_left_their_session(tmp_path: Path) -> None:
    code = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.wait()
        print("forked", flush=True)
    """
    async with spaces_bed(tmp_path) as bed:
        result = await bed.ended(code)
        # `wait` returns when nothing of it is left: its control group is removed.
        assert result.status == 0
        assert bed.lines == ["forked"]


async def test_app_that_is_stopped_while_its_sandbox_starts_ends(tmp_path: Path) -> None:
    """Bubblewrap's first child does not end with it until it has asked the kernel for that."""
    async with spaces_bed(tmp_path) as bed:
        for _ in range(10):
            running = await bed.start(bed.with_code(SERVER))
            async with asyncio.timeout(60):
                while len(running.processes()) < 2:
                    await asyncio.sleep(0)
                await running.stop(0)
            assert running.processes() == set()


async def test_fork_bomb_stays_within_its_limit(tmp_path: Path) -> None:
    code = """
        import os, time
        while True:
            try:
                if os.fork() == 0:
                    time.sleep(600)
            except BlockingIOError:
                break
        raise SystemExit(7)
    """
    async with spaces_bed(tmp_path) as bed:
        result = await bed.ended(code)
        assert result.reason == "It reached its limit of 32 processes and ended with exit status 7."


async def test_memory_is_limited(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        result = await bed.ended("x = bytearray(400 * 2**20)")
        assert result.reason == "It used more than its 192 MiB of memory and was ended."


async def test_buffers_of_sockets_are_limited(tmp_path: Path) -> None:
    """They are memory of the kernel, and all sockets of the machine share a limit."""
    code = """
        import socket
        listener, opened, sent = socket.create_server(("127.0.0.1", 5555)), [], 0
        while sent < 400 * 2**20 and len(opened) < 400:
            client = socket.create_connection(("127.0.0.1", 5555))
            opened += [client, listener.accept()[0]]
            client.setblocking(False)
            try:
                while True:
                    sent += client.send(bytes(2**20))
            except BlockingIOError:
                pass
        print(sent, flush=True)
    """
    async with spaces_bed(tmp_path) as bed:
        # With control groups of version 2, they are a part of its memory.
        result = await bed.ended(code)
        assert result.status != 0 or int(bed.lines[-1]) < LIMITS.memory


async def test_memory_of_all_apps_together_is_limited(tmp_path: Path) -> None:
    together = LimitsTogether(memory=128 * MIB, disk=64 * MIB)
    async with spaces_bed(tmp_path, together=together) as bed:
        small = await bed.serving(space="space-2")
        result = await bed.ended("x = bytearray(160 * 2**20)")
        assert result.reason == "All Spaces of this machine together used up their memory, and it was ended."
        assert await get(small) == b"hello"


async def test_memory_of_all_apps_is_limited_when_another_process_has_stopped(tmp_path: Path) -> None:
    """The control group of all apps is that of both processes, as while one hub replaces another."""
    together = LimitsTogether(memory=128 * MIB, disk=64 * MIB)
    async with spaces_bed(tmp_path, together=together) as bed:
        assert (await bed.ended("raise SystemExit(3)")).status == 3
        other = BubblewrapRunner(tmp_path / "spaces", together)
        running = await other.start(bed.with_code("raise SystemExit(3)"), Environment(""), bed.lines.append)
        await running.wait()
        await other.close()
        result = await bed.ended("x = bytearray(160 * 2**20)")
        assert result.reason == "All Spaces of this machine together used up their memory, and it was ended."


async def test_disk_is_limited(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        result = await bed.ended("f = open('/app/f', 'wb')\nwhile True: f.write(bytes(2**20))")
        assert result.status == 1
        assert bed.lines[-2:] == [
            "OSError: [Errno 28] No space left on device",
            "hubgate: the work folder is full (32 MiB)",
        ]


async def test_source_that_does_not_fit_is_reported(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        source = tmp_path / "large.tar"
        source.write_bytes(archive({"app.py": "", "large": "x" * (33 * MIB)}))
        running = await bed.start(replace(bed.app, source=source))
        assert (await running.wait()).status == 1
        assert bed.lines == ["hubgate: the files do not fit into /app: No space left on device"]


async def test_output_is_slowed_down_and_escapes_are_removed(tmp_path: Path) -> None:
    code = r"""
        import sys
        print("\x1b[31mred\x1b[0m \0 \x07 caf\u00e9", flush=True)
        sys.stdout.buffer.write(b"\xff\n" + b"x" * 10000 + b"\n")
        line = b"y" * 999 + b"\n"
        while True:
            sys.stdout.buffer.write(line)
    """
    async with spaces_bed(tmp_path) as bed:
        running = await bed.start(bed.with_code(code))
        async with asyncio.timeout(60):
            while not any("slowed down" in line for line in bed.lines):
                await asyncio.sleep(0.01)
        await running.stop(0)
        assert bed.lines[:2] == ["red \ufffd \ufffd café", "\ufffd"]
        assert max(map(len, bed.lines)) == 4096
        # 512 KiB at once, what buffers hold, and 16 KiB for each of a few seconds.
        assert sum(map(len, bed.lines)) < 2 * MIB


@pytest.mark.parametrize("ends", [True, False], ids=["ends", "is stopped"])
async def test_app_whose_output_is_slowed_down_ends_at_once(tmp_path: Path, ends: bool) -> None:
    """Each line feed costs time. At the usual rate, what buffers hold of them would be read for hours."""
    code = f"""
        import fcntl, os
        # As large as a pipe can be.
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 2**20)
        os.write(1, bytes(600 * 2**10) + b"\\n" * 2**19)
        if {ends}:
            os._exit(3)
        while True:
            os.write(1, b"\\n" * 2**16)
    """
    async with spaces_bed(tmp_path) as bed:
        running = await bed.start(bed.with_code(code))
        async with asyncio.timeout(60):
            while not any("slowed down" in line for line in bed.lines):
                await asyncio.sleep(0.01)
            result = await (running.wait() if ends else running.stop(0))
        assert result.status == 3 or not ends


async def test_app_that_sends_its_output_away_ends_at_once(tmp_path: Path) -> None:
    """A descriptor in a message to a socket is open until the message is received."""
    code = """
        import array, os, socket, time
        peer = socket.socket(socket.AF_UNIX)
        peer.connect("/opt/hubgate-proxy.sock")
        output = array.array("i", [1])
        peer.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, output)])
        os._exit(3)
    """
    async with spaces_bed(tmp_path) as bed:
        (tmp_path / "silent.sock").unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(tmp_path / "silent.sock"))
            (tmp_path / "silent.sock").chmod(0o666)
            silent.listen()
            async with asyncio.timeout(60):
                result = await bed.ended(code, proxy=tmp_path / "silent.sock")
        assert result.status == 3


async def test_app_with_many_connections_and_endless_headers_stays_alone(tmp_path: Path) -> None:
    code = """
        import socket, os, threading
        server = socket.create_server((os.environ["HOST"], int(os.environ["PORT"])))
        taken = []
        def flood():
            try:
                for _ in range(1000):
                    taken.append(socket.create_connection(("127.0.0.1", 61080), timeout=1))
            except OSError as error:
                print(type(error).__name__, flush=True)
        threading.Thread(target=flood).start()
        while True:
            client, _ = server.accept()
            client.sendall(b"HTTP/1.1 200 OK\\r\\n")
            try:
                while True:
                    client.sendall(b"X-Header: more\\r\\n" * 1000)
            except OSError:
                pass
    """
    async with spaces_bed(tmp_path) as bed:
        running = await bed.serving(code)
        with pytest.raises(Unreachable) as failure:
            await get(running)
        assert failure.value.cause == "more than 65,536 bytes of headers"
        other = await bed.serving(space="space-2")
        assert await get(other) == b"hello"


async def test_nothing_survives_the_death_of_the_hub(tmp_path: Path) -> None:
    """The parent dies of SIGKILL: the sandbox ends, and a sweep removes its control group."""
    tmp_path.chmod(0o700)
    program = Path(__file__).with_name("dying_hub.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])}
    process = await asyncio.create_subprocess_exec(
        ".venv/bin/python", str(program), str(tmp_path), stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    inside = json.loads(await process.stdout.readline())
    assert inside["processes"]
    process.kill()
    await process.wait()
    async with asyncio.timeout(60):
        while any(Path(f"/proc/{pid}").exists() for pid in inside["processes"]):
            await asyncio.sleep(0.01)
    assert all(Path(folder).exists() for folder in inside["groups"])
    async with spaces_bed(tmp_path) as bed:
        await bed.runner.sweep()
        assert not any(Path(folder).parent.exists() for folder in inside["groups"])
        assert list((tmp_path / "spaces" / "owners").iterdir()) == []
        assert list((tmp_path / "spaces" / "sockets").iterdir()) == []


async def test_sandbox_that_did_not_end_is_ended_by_the_next_process(tmp_path: Path) -> None:
    """Its control group cannot be removed while there is another one in it."""
    async with spaces_bed(tmp_path) as bed:
        running = await bed.serving()
        assert isinstance(running, RunningApp)
        groups = running._sandbox.group.paths
        for path in groups:
            (path / "another").mkdir()
        await running.stop(0)
    for path in groups:
        (path / "another").rmdir()
    async with spaces_bed(tmp_path) as bed:
        await bed.runner.sweep()
    assert not any(path.exists() for path in groups)
