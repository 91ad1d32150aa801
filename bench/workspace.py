"""The contestants' environment: a folder on a real disk, a PostgreSQL server with fsync, facts about the machine."""

import asyncio
import contextlib
import os
import platform
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import asyncpg
from tests.bed.engines import run_sql
from tests.bed.postgres import Cluster
from tests.bed.processes import ROOT

from bench.harness import Budget

POSTGRES_VERSION = "16"


@dataclass
class Workspace:
    folder: Path
    budget: Budget
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @cached_property
    def postgres_url(self) -> str:
        """The URL of a PostgreSQL server, started on first use, with fsync enabled (the test bed disables it)."""
        cluster = Cluster(POSTGRES_VERSION)
        self._stack.callback(cluster.remove)
        for setting in ("fsync", "full_page_writes"):
            cluster.command(f"ALTER SYSTEM SET {setting} = on")
        cluster.stop()
        cluster.start()
        return cluster.url()

    def postgres_database(self, name: str) -> str:
        """Create an empty database for a hub and return its URL."""
        asyncio.run(run_sql(self.postgres_url, f"CREATE DATABASE {name}"))
        return self.postgres_url.replace("/postgres?", f"/{name}?")

    def subfolder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        return folder

    def facts(self) -> dict[str, str]:
        return {
            "code": code_version(),
            "cores": str(os.cpu_count()),
            "load before": f"{os.getloadavg()[0]:.1f}",
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "folder": f"{self.folder.parent} ({file_system(self.folder)})",
        }

    def postgres_facts(self) -> dict[str, str]:
        return asyncio.run(_postgres_facts(self.postgres_url))


@contextlib.contextmanager
def open_workspace(parent: Path, budget: Budget) -> Iterator[Workspace]:
    folder = Path(tempfile.mkdtemp(prefix="hubgate-bench-", dir=parent))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield Workspace(folder, budget, stack)


def file_system(folder: Path) -> str:
    """The type of the file system. On tmpfs fsync costs nothing, so commit rates would be meaningless."""
    found = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "file system unknown"


def code_version() -> str:
    """The version of the code: only runs of the same code are comparable, and a checkout may change during a run."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


async def _postgres_facts(url: str) -> dict[str, str]:
    connection = await asyncpg.connect(url)
    try:
        shown = {name: await connection.fetchval(f"SHOW {name}") for name in ("server_version", "fsync")}
        data = Path(await connection.fetchval("SHOW data_directory"))
    finally:
        await connection.close()
    return {
        "postgresql": f"{shown['server_version']}, fsync {shown['fsync']}",
        "postgresql folder": f"{data.parent.parent} ({file_system(data.parent.parent)})",
    }
