"""Commits without a hub, as in `repo_commits`: a blob, a tree, a commit and a ref, with fsync as in the hub."""

import os
import secrets
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pygit2
from pygit2.enums import FileMode, Option

from hubgate.server.hub.repos.creation import GIT_ATTRIBUTES

LIBRARY, PROGRAMS = "libgit2 in a loop", "git hash-object, mktree, commit-tree, update-ref"
BYTES = 1024
MAIN = "refs/heads/main"
# The minimum number of commits per client and turn.
MIN_COMMITS = 2

_AUTHOR = pygit2.Signature("ada", "ada@example.org", 0, 0)
_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}

Commit = Callable[[Path], object]


def by_library(folder: Path, clients: int, repos: int, seconds: float) -> dict[str, float]:
    # libgit2 then syncs each object and the ref as it is written.
    pygit2.option(Option.ENABLE_FSYNC_GITDIR, True)
    return _turn(folder, clients, repos, seconds, _library_commit)


def by_programs(folder: Path, clients: int, repos: int, seconds: float) -> dict[str, float]:
    return _turn(folder, clients, repos, seconds, _programs_commit)


def _turn(folder: Path, clients: int, repos: int, seconds: float, commit: Commit) -> dict[str, float]:
    """A turn with a thread per client, each with separate repos."""
    folders = [_repo(folder / f"{number}.git") for number in range(repos)]
    latencies: list[float] = []
    started, used = time.perf_counter(), _cpu_seconds()

    def run(repo_folders: list[Path]) -> None:
        created = 0
        while (now := time.perf_counter()) < started + seconds or created < MIN_COMMITS:
            commit(repo_folders[created % len(repo_folders)])
            latencies.append(time.perf_counter() - now)
            created += 1

    threads = [threading.Thread(target=run, args=(folders[number::clients],)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    cuts = quantiles(latencies, n=100)
    used = _cpu_seconds() - used
    return {
        "rate": len(latencies) / took,
        "p50 ms": cuts[49] * 1000,
        "p99 ms": cuts[98] * 1000,
        # No load generator runs in this turn.
        "load's core %": 0.0,
        "CPU µs": 1e6 * used / len(latencies),
    }


def _repo(folder: Path) -> Path:
    """Create a repo with a single commit, as a new repo of the hub has, if it does not exist."""
    if not folder.exists():
        repo = pygit2.init_repository(str(folder), bare=True)
        repo.config["core.fsync"] = "committed,reference"
        builder = repo.TreeBuilder()
        builder.insert(".gitattributes", repo.create_blob(GIT_ATTRIBUTES.encode()), FileMode.BLOB)
        repo.create_commit(MAIN, _AUTHOR, _AUTHOR, "initial commit", builder.write(), [])
    return folder


def _library_commit(folder: Path) -> None:
    repo = pygit2.Repository(str(folder))
    parent = repo[repo.references[MAIN].target]
    assert isinstance(parent, pygit2.Commit)
    builder = repo.TreeBuilder(parent.tree)
    builder.insert("notes.txt", repo.create_blob(secrets.token_bytes(BYTES)), FileMode.BLOB)
    repo.create_commit(MAIN, _AUTHOR, _AUTHOR, "A change", builder.write(), [parent.id])


def _programs_commit(folder: Path) -> None:
    parent = _git(folder, "rev-parse", MAIN)
    attributes = _git(folder, "ls-tree", parent, ".gitattributes")
    blob = _git(folder, "hash-object", "-w", "--stdin", given=secrets.token_bytes(BYTES))
    tree = _git(folder, "mktree", given=f"{attributes}\n100644 blob {blob}\tnotes.txt\n".encode())
    commit = _git(folder, "commit-tree", "-p", parent, "-m", "A change", tree)
    _git(folder, "update-ref", MAIN, commit, parent)


def _git(folder: Path, *arguments: str, given: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, input=given, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
