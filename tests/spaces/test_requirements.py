"""Installing requirements, from a package index on this machine."""

import asyncio
import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.spaces.bed import SERVER, START_SECONDS, Bed, get, spaces_bed

from hubgate.server.spaces.bubblewrap import inside
from hubgate.server.spaces.bubblewrap.installed import Installed
from hubgate.server.spaces.runner import MIB, App, BuildFailed, LimitsTogether

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"


@contextmanager
def package_index(folder: Path) -> Iterator[tuple[str, int]]:
    """A package index in a folder: its URL and port."""
    handler = partial(_Quiet, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple", server.server_port
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def add_wheel(index: Path, name: str, files: dict[str, str]) -> None:
    folder = index / "simple" / name
    folder.mkdir(parents=True)
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    contents = {
        **files,
        f"{name}-1.0.dist-info/METADATA": METADATA.format(name=name),
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*contents, f"{name}-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in {**contents, f"{name}-1.0.dist-info/RECORD": record}.items():
            archive.writestr(path, text)
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


async def test_requirements_are_installed_once_and_mounted_read_only(tmp_path: Path) -> None:
    add_wheel(tmp_path / "index", "greeting", {"greeting.py": "text = 'hello'\n"})
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)})) as bed:
            code = """
                import greeting
                print(greeting.text, greeting.__file__, flush=True)
                open("/env/greeting.py", "w")
            """
            app = replace(bed.with_code(code), requirements="greeting==1.0\n", index=url, hub_host="127.0.0.1")
            built = await bed.runner.build(app, bed.lines.append)
            assert any("Successfully installed greeting-1.0" in line for line in bed.lines)
            running = await bed.runner.start(app, built, bed.lines.append)
            assert (await running.wait()).status == 1
            assert "hello /env/greeting.py" in bed.lines
            assert bed.lines[-1] == "OSError: [Errno 30] Read-only file system: '/env/greeting.py'"

            bed.lines.clear()
            assert await bed.runner.build(app, bed.lines.append) == built
            assert bed.lines == ["hubgate: the requirements are already installed"]
            deleted = tmp_path / "spaces" / "installed" / "of-a-deleted-space"
            nest(deleted / "0123", 1500)
            await bed.runner.retain([app.space])
            # It may have been installed just now.
            assert deleted.exists()
            os.utime(deleted / "0123", (0, 0))
            await bed.runner.retain([app.space])
            assert not deleted.exists()
            assert await bed.runner.build(app, bed.lines.append) == built


async def test_app_keeps_its_packages_when_they_are_installed_again(tmp_path: Path) -> None:
    add_wheel(tmp_path / "index", "greeting", {"greeting.py": "text = 'imported late'\n"})
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)})) as bed:
            code = SERVER.replace('b"hello"', '__import__("greeting").text.encode()')
            app = replace(bed.with_code(code), requirements="greeting", index=url, hub_host="127.0.0.1")
            running = await bed.runner.start(app, await bed.runner.build(app, bed.lines.append), bed.lines.append)
            await running.until_listening(START_SECONDS)
            await bed.runner.forget(app.space)
            bed.lines.clear()
            await bed.runner.build(app, bed.lines.append)
            assert any("Successfully installed greeting-1.0" in line for line in bed.lines)
            assert await get(running) == b"imported late"
            await running.stop(0)
            await bed.runner.forget(app.space)
            assert not any((tmp_path / "spaces" / "installed").glob("*/*"))


async def test_packages_of_all_spaces_have_a_limit(tmp_path: Path) -> None:
    """The least recently used are deleted, but not those of an app that runs."""
    add_wheel(tmp_path / "index", "large", {"large.py": "x", "data": "0" * (16 * MIB)})
    together = LimitsTogether(memory=1024 * MIB, disk=60 * MIB)
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)}), together=together) as bed:

            def of(space: str) -> App:
                return replace(bed.with_code(SERVER, space), requirements="large", index=url, hub_host="127.0.0.1")

            running = await bed.runner.start(
                of("one"), await bed.runner.build(of("one"), bed.lines.append), bed.lines.append
            )
            await bed.runner.build(of("two"), bed.lines.append)
            with pytest.raises(BuildFailed, match="together have reached 60 MiB"):
                await bed.runner.build(of("three"), bed.lines.append)
            installed = list((tmp_path / "spaces" / "installed").glob("*/*"))
            for path in installed:
                os.utime(path, (0, 0))
            await bed.runner.build(of("three"), bed.lines.append)
            assert [path.exists() for path in installed].count(True) == 1
            assert await get(running) == b"hello"


async def test_cancelled_build_leaves_no_incomplete_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push cancels the build of the version before it, which may be about to store its packages."""
    add_wheel(tmp_path / "index", "greeting", {f"greeting/{number}.py": "" for number in range(300)})
    slow_program(tmp_path, monkeypatch, "du", "sleep 0.5")
    # Deletes some files, and the others later.
    slow_program(
        tmp_path, monkeypatch, "rm", 'for last; do :; done; /usr/bin/rm -f "$last"/packages/greeting/1*; sleep 2'
    )
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)})) as bed:
            app = replace(bed.with_code(""), requirements="greeting", index=url, hub_host="127.0.0.1")
            build = asyncio.create_task(bed.runner.build(app, bed.lines.append))
            async with asyncio.timeout(60):
                while not (tmp_path / "du").exists():
                    await asyncio.sleep(0.01)
            build.cancel()
            await asyncio.gather(build, return_exceptions=True)
            built = await bed.runner.build(app, bed.lines.append)
            (folder,) = (tmp_path / "spaces" / "installed").glob("*/*")
            assert folder.name == built.id
            assert len(list((folder / "packages" / "greeting").glob("*.py"))) == 300


async def test_concurrent_builds_make_room_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = Installed(tmp_path / "installed", 4 * MIB)
    folders = [tmp_path / "installed" / f"space-{number}" / "key" for number in range(4)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "cost").write_text(str(MIB))
        os.utime(folder, (number, number))
    slow_program(tmp_path, monkeypatch, "rm", "sleep 1")
    await asyncio.gather(*(asyncio.to_thread(installed.make_room, 2 * MIB) for _ in range(2)))
    # Both found the same room, and what was used last is still there.
    assert [folder.exists() for folder in folders] == [False, False, True, True]


def test_folders_that_an_archive_does_not_name_are_counted(tmp_path: Path) -> None:
    """A package may forge the archive. Two hundred thousand entries with a deep path each would fill any disk."""
    path = tmp_path / "forged.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(10):
            archive.addfile(tarfile.TarInfo(f"{number}/" + "a/" * 50 + "file"), io.BytesIO())
    folder = tmp_path / "unpacked"
    folder.mkdir()
    assert not inside.unpack(os.open(path, os.O_RDONLY), str(folder), max_members=100)
    assert len(list(folder.rglob("*"))) <= 100


async def test_requirement_that_does_not_exist_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "index" / "simple").mkdir(parents=True)
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)})) as bed:
            await fails(bed, "nothing-like-this", url, "It ended with exit status 1")
            assert any("No matching distribution found for nothing-like-this" in line for line in bed.lines)
            assert not any((tmp_path / "spaces" / "installed").glob("*/*"))


async def test_requirements_larger_than_the_disk_fail_the_build(tmp_path: Path) -> None:
    add_wheel(tmp_path / "index", "large", {"large.py": "x", "data": "0" * (40 * MIB)})
    with package_index(tmp_path / "index") as (url, port):
        async with spaces_bed(tmp_path, direct=frozenset({("127.0.0.1", port)})) as bed:
            await fails(bed, "large", url, "It ended with exit status")
            assert any("No space left on device" in line for line in bed.lines)


async def test_index_elsewhere_on_this_machine_is_refused(tmp_path: Path) -> None:
    add_wheel(tmp_path / "index", "greeting", {"greeting.py": ""})
    with package_index(tmp_path / "index") as (url, _):
        async with spaces_bed(tmp_path) as bed:
            await fails(bed, f"--index-url {url}\n--retries 0\ngreeting", "", "It ended with exit status 1")


async def test_build_that_does_not_end_is_ended(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        limits = replace(bed.app.limits, build_seconds=0.5)
        app = replace(bed.with_code(""), requirements="x", limits=limits, index="http://127.0.0.1:9/simple")
        with pytest.raises(BuildFailed, match="not installed within"):
            await bed.runner.build(app, bed.lines.append)


def slow_program(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, first: str) -> None:
    """Let the hub run these commands before a program. When it is started, there is a file with its name."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(f'#!/bin/sh\n: > {folder}/{name}\n{first}\nexec /usr/bin/{name} "$@"\n')
    (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


def nest(folder: Path, depth: int) -> None:
    """Create folders in folders, deeper than Python can recurse."""
    folder.mkdir(parents=True)
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a", dir_fd=descriptor)
        inner = os.open("a", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


async def fails(bed: Bed, requirements: str, index: str, reason: str) -> None:
    app = replace(bed.with_code(""), requirements=requirements, index=index, hub_host="127.0.0.1")
    with pytest.raises(BuildFailed, match=reason):
        await bed.runner.build(app, bed.lines.append)
