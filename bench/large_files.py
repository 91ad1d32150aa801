"""Uploads and downloads of a large file by an existing client, with chunks and without, compared with nginx."""

import contextlib
import os
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import httpx
from tests.bed.clients import Client
from tests.bed.repos import create_repo

from bench.harness import Table, run_interleaved, table
from bench.http_requests import Server
from bench.nginx import run_nginx
from bench.repo_hubs import SQLITE, USER, RepoHub, repo_hub_process
from bench.workspace import Workspace

SIZE = 1_000_000_000
CLIENT = "huggingface_hub-2.4"
WITHOUT_CHUNKS = {"HF_HUB_DISABLE_XET": "1"}
NGINX = "nginx, a plain HTTP client"
REPO = "large"
_PART = 1024 * 1024

Turn = dict[str, float]


def measure(workspace: Workspace) -> list[Table]:
    size = int(workspace.budget.seconds(SIZE))
    root = workspace.subfolder("large-root")
    with contextlib.ExitStack() as stack:
        nginx = stack.enter_context(run_nginx(root, workspace.subfolder("large-nginx")))
        hub = stack.enter_context(repo_hub_process(workspace, SQLITE))
        with hub.client() as client:
            create_repo(client, REPO)
        files = Files(workspace, nginx, root, hub, size)
        uploads: dict[str, Callable[[], Turn]] = {
            NGINX: files.put,
            "LFS, new content": partial(files.upload, WITHOUT_CHUNKS),
            "chunks, new content": partial(files.upload, {}),
            "chunks, the last content under another name": partial(files.upload, {}, is_new=False),
        }
        downloads: dict[str, Callable[[], Turn]] = {
            NGINX: files.get,
            "plain HTTP client, stored as one object": partial(files.get_from_hub, "lfs.bin"),
            "plain HTTP client, stored as chunks": partial(files.get_from_hub, "chunks.bin"),
            "existing client, stored as one object": partial(files.download, "lfs.bin", WITHOUT_CHUNKS),
            "existing client, stored as chunks": partial(files.download, "chunks.bin", {}),
        }
        rounds = workspace.budget.rounds
        upload_table = _table(f"Upload of {size // 1_000_000:,} MB", size, run_interleaved(uploads, rounds))
        files.upload(WITHOUT_CHUNKS, name="lfs.bin")
        files.upload({}, name="chunks.bin")
        files.put()
        return [
            upload_table,
            _table(f"Download of {size // 1_000_000:,} MB", size, run_interleaved(downloads, rounds)),
        ]


def _table(title: str, size: int, turns: Mapping[str, list[Turn]]) -> Table:
    rates = {name: [size / 1e6 / turn.pop("seconds") for turn in taken] for name, taken in turns.items()}
    more = {
        name: {column: median(turn[column] for turn in taken) for column in taken[0]} for name, taken in turns.items()
    }
    return table(title, "MB/s", NGINX, rates, more)


class Files:
    """The file that is transferred next, and the transfers."""

    def __init__(self, workspace: Workspace, nginx: Server, root: Path, hub: RepoHub, size: int) -> None:
        self._folder = workspace.subfolder("large-files")
        self._nginx, self._root, self._hub, self._size = nginx, root, hub, size
        self._numbers = count()
        self._file = self._folder / "file.bin"

    def put(self) -> Turn:
        """What a transfer costs that only stores the bytes: nginx writes them to a file."""
        self._renew()
        return self._timed(self._nginx, self._send)

    def get(self) -> Turn:
        return self._timed(self._nginx, lambda: self._receive(f"http://127.0.0.1:{self._nginx.port}/file.bin"))

    def get_from_hub(self, name: str) -> Turn:
        url = f"{self._hub.url}/{USER}/{REPO}/resolve/main/{name}"
        return self._timed(self._hub.server, lambda: self._receive(url))

    def upload(self, variables: Mapping[str, str], name: str = "", *, is_new: bool = True) -> Turn:
        if is_new:
            self._renew()
        path = name or f"{next(self._numbers)}.bin"
        command = ("upload", f"{USER}/{REPO}", str(self._file), path, "--quiet")
        stored = self._stored()
        turn = self._timed(self._hub.server, lambda: self._hf(command, variables))
        return {**turn, "stored MB": (self._stored() - stored) / 1e6}

    def download(self, name: str, variables: Mapping[str, str]) -> Turn:
        command = ("download", f"{USER}/{REPO}", name, "--local-dir", "down", "--quiet")
        return self._timed(self._hub.server, lambda: self._hf(command, variables))

    def _renew(self) -> None:
        with self._file.open("wb") as file:
            for start in range(0, self._size, _PART):
                file.write(os.urandom(min(_PART, self._size - start)))

    def _hf(self, command: tuple[str, ...], variables: Mapping[str, str]) -> None:
        """Run a command in a new home, whose caches are empty."""
        home = self._folder / f"home-{next(self._numbers)}"
        home.mkdir()
        done = Client(CLIENT, home, self._hub.url).run("hf", *command, token=self._hub.token, seconds=900, **variables)
        assert done.returncode == 0, done.stderr
        for file in home.rglob("*.bin"):
            assert file.stat().st_size == self._size
            file.unlink()

    def _send(self) -> None:
        headers = {"content-length": str(self._size)}
        url = f"http://127.0.0.1:{self._nginx.port}/file.bin"
        with self._file.open("rb") as file:
            parts = iter(partial(file.read, _PART), b"")
            httpx.put(url, content=parts, headers=headers, timeout=600).raise_for_status()

    def _receive(self, url: str) -> None:
        size = 0
        with httpx.stream("GET", url, headers={"accept-encoding": "identity"}, follow_redirects=True) as response:
            for part in response.raise_for_status().iter_raw(_PART):
                size += len(part)
        assert size == self._size

    def _stored(self) -> int:
        data = Path(self._hub.settings["data_dir"])
        return sum(
            file.stat().st_size for kind in ("lfs", "xorbs") for file in (data / kind).rglob("*") if file.is_file()
        )

    def _timed(self, server: Server, work: Callable[[], None]) -> Turn:
        """Seconds, and the CPU seconds of the server and of the client."""
        used, own, started = server.cpu_seconds(), _own_cpu_seconds(), time.perf_counter()
        work()
        seconds = time.perf_counter() - started
        return {
            "seconds": seconds,
            "server's CPU s": server.cpu_seconds() - used,
            "client's CPU s": _own_cpu_seconds() - own,
        }


def _own_cpu_seconds() -> float:
    """The CPU time of this process and of the clients that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)
