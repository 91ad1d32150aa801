"""Clones of a repo with 1,000 commits by the git program, and lists of its refs, from the hub and `git http-backend`.

Both serve the same folder, with the same packs and refs; the backend runs in bench/cgi_git.py.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.bed.git import repo_url, run_git
from tests.bed.processes import ROOT, environment
from tests.bed.repos import create_repo

from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import Server, medians
from bench.repo_hubs import USER, RepoHub
from bench.workspace import Workspace

TURN = 3.0
COMMITS = 1000
FILES = 50
AT_ONCE = 4
BACKEND, HUB = "git http-backend", "hubgate serve"
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def measure(workspace: Workspace, hub: RepoHub) -> list[Table]:
    work_folder = workspace.subfolder("clones")
    folder = _push_history(hub, work_folder)
    with _backend(folder.parent) as backend:
        servers = {
            BACKEND: (backend, f"http://127.0.0.1:{backend.port}/{folder.name}"),
            HUB: (hub.server, f"{hub.url}/{USER}/history"),
        }
        clones = f"Clones of {COMMITS:,} commits"
        return [
            _compare(workspace, title, partial(work, work_folder), servers, clients)
            for title, work in ((clones, _clone), ("Lists of refs, as in a fetch of nothing new", _list_refs))
            for clients in (1, AT_ONCE)
        ]


def _compare(
    workspace: Workspace,
    title: str,
    work: Callable[[str], object],
    servers: Mapping[str, tuple[Server, str]],
    clients: int,
) -> Table:
    contestants = {
        name: partial(_turn, server, partial(work, url), clients, workspace.budget.seconds(TURN))
        for name, (server, url) in servers.items()
    }
    turns = run_interleaved(warm_up(contestants), workspace.budget.rounds)
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    return table(f"{title}, {clients} at once", "a minute", BACKEND, rates, more)


def _push_history(hub: RepoHub, work_folder: Path) -> Path:
    """Push a history to the hub and return the folder of the repo in the hub."""
    work = work_folder / "work.git"
    work.mkdir()
    _git(work, "init", "-q", "--bare", "-b", "main")
    _git(work, "fast-import", "--quiet", given="".join(_history()).encode())
    with hub.client() as client:
        created = create_repo(client, "history")
    _git(work, "push", "-q", "--force", repo_url(hub.url, f"{USER}/history", hub.token), "main")
    # A request in the old protocol copies the refs into the folder, where the backend reads them.
    _git(work_folder, "-c", "protocol.version=0", "ls-remote", "-q", f"{hub.url}/{USER}/history")
    return hub.folder_of(created["id"])


def _git(folder: Path, *arguments: str, given: bytes = b"") -> None:
    done = run_git(folder, *arguments, given=given)
    assert done.returncode == 0, (arguments, done.stderr)


def _history() -> Iterator[str]:
    for number in range(COMMITS):
        text = "".join(f"{secrets.token_hex(30)}\n" for _ in range(20))
        yield f"commit refs/heads/main\ncommitter ada <ada@example.org> {1_700_000_000 + number} +0000\n"
        yield f"data 8\nA change\nM 100644 inline folder-{number % 7}/file-{number % FILES}.txt\n"
        yield f"data {len(text)}\n{text}\n"


@contextlib.contextmanager
def _backend(root: Path) -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.cgi_git", root], cwd=ROOT, env=environment(), stdout=subprocess.PIPE
    )
    with process:
        try:
            assert process.stdout is not None
            yield Server(int(process.stdout.readline()), process.pid)
        finally:
            process.kill()


def _turn(server: Server, work: Callable[[], object], clients: int, seconds: float) -> dict[str, float]:
    started, used = time.perf_counter(), server.cpu_seconds()
    took: list[float] = []

    def run() -> None:
        while not took or time.perf_counter() < started + seconds:
            before = time.perf_counter()
            work()
            took.append(time.perf_counter() - before)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    return {
        "rate": 60 * len(took) / elapsed,
        "ms each": 1000 * sum(took) / len(took),
        "CPU ms": 1000 * (server.cpu_seconds() - used) / len(took),
    }


def _clone(work_folder: Path, url: str) -> None:
    target = work_folder / secrets.token_hex(8)
    subprocess.run(["git", "clone", "-q", "--bare", url, target], env=_ENVIRONMENT, check=True)
    shutil.rmtree(target)


def _list_refs(work_folder: Path, url: str) -> None:
    subprocess.run(["git", "ls-remote", "-q", url], cwd=work_folder, env=_ENVIRONMENT, check=True, capture_output=True)
