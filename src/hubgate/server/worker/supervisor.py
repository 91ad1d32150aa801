"""The parent process of a running hub: starts and stops the child processes, and restarts those that die.

The parent owns the listening socket and does no other work, so that only a signal stops it.
"""

import contextlib
import errno
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

from msgspec import Struct

from hubgate.server.errors import StartupError
from hubgate.server.settings import Settings
from hubgate.server.worker.child import settings_line
from hubgate.server.worker.forking import can_fork, fork_module
from hubgate.server.worker.servers import BACKLOG

log = logging.getLogger("hubgate.worker")

# The hub stops within ten seconds (docs/operating.md): the servers wait GRACE_SECONDS (servers.py) for requests in
# flight, and a process that is still running after STOP_SECONDS is killed.
STOP_SECONDS = 9.0
CHECK_SECONDS = 5.0
GROUP_SIGNAL_SECONDS = 0.2
READY_SECONDS = 30.0
FIRST_BACKOFF_SECONDS = 0.2
LONGEST_BACKOFF_SECONDS = 10.0


class Process(Protocol):
    """A child process, with the interface of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


def start_module(module: str, inherited: Sequence[int], environment: Mapping[str, str]) -> Process:
    """Run a module as a child process that inherits these descriptors; their numbers are its arguments."""
    if can_fork():
        return fork_module(module, inherited, environment)
    return subprocess.Popen(
        # -P omits the working directory from sys.path: a json.py there must not be imported.
        [sys.executable, "-P", "-m", module, *map(str, inherited)],
        stdin=subprocess.PIPE,
        pass_fds=inherited,
        env=environment,
    )


class Modules(Struct, frozen=True):
    """The Python modules that the child processes run."""

    web: str = "hubgate.server.worker.web"
    deliver: str = "hubgate.server.worker.background"
    spaces: str = "hubgate.server.worker.spaces"


MODULES = Modules()


@dataclass
class _Child:
    module: str
    listens: bool
    role: str = "background"
    process: Process | None = None
    started_at: float = 0.0
    restart_at: float | None = None
    backoff: float = FIRST_BACKOFF_SECONDS


@dataclass
class Supervisor:
    settings: Settings
    listener: socket.socket
    modules: Modules = MODULES
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self._children = [_Child(self.modules.web, listens=True, role="web") for _ in range(self.settings.workers)]
        if self.settings.deliver == "child":
            self._children.append(_Child(self.modules.deliver, listens=False))
        if self.settings.runs_spaces:
            self._children.append(_Child(self.modules.spaces, listens=False, role="Spaces"))
        self._stopping = False
        # Signal handlers write to this pipe, so that one select waits for signals and for the timeout.
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def start(self) -> bool:
        """Start all children. True once all are ready, False after a signal. If one fails, all are stopped."""
        if self._stopping:
            return False
        try:
            for ready in [self._spawn(child) for child in self._children]:
                self._await_ready(ready)
        except (StartupError, OSError):
            self.stop()
            raise
        return not self._stopping

    def watch(self) -> None:
        """Restart dead children with exponential backoff until SIGTERM or SIGINT, then stop."""
        while not self._stopping:
            self._sleep(self._seconds_until_restart())
            if self._stopping:
                break
            for child in self._children:
                self._restart_if_dead(child)
        self.stop()

    def stop(self) -> None:
        alive = [child.process for child in self._children if child.process and child.process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGTERM)
        # Connections in the accept queue are refused now instead of hanging.
        self.listener.close()
        deadline = time.monotonic() + STOP_SECONDS
        for process in alive:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("process %d did not stop in time and was killed", process.pid)
                process.kill()
                process.wait()
            if process.returncode not in (0, -signal.SIGTERM):
                log.warning("process %d ended with status %d", process.pid, process.returncode)
            _close_pipe(process)

    def _seconds_until_restart(self) -> float:
        """How long there is nothing to do. A child that dies ends the sleep, by SIGCHLD."""
        waiting = [child.restart_at for child in self._children if child.restart_at is not None]
        return max(min(waiting) - time.monotonic(), 0.0) if waiting else CHECK_SECONDS

    def _restart_if_dead(self, child: _Child) -> None:
        if child.process is None or child.process.poll() is None:
            return
        now = time.monotonic()
        if child.restart_at is None:
            if now - child.started_at > LONGEST_BACKOFF_SECONDS:
                child.backoff = FIRST_BACKOFF_SECONDS
            child.restart_at = now + child.backoff
            child.backoff = min(child.backoff * 2, LONGEST_BACKOFF_SECONDS)
            status = child.process.returncode
            log.error("%s process %d ended with status %d; starting another", child.role, child.process.pid, status)
        if now >= child.restart_at:
            _close_pipe(child.process)
            try:
                os.close(self._spawn(child))
            except OSError:
                # Out of memory or file descriptors, or the installation is being replaced: retry later.
                log.exception("could not start a process; will retry")
                child.restart_at = now + child.backoff

    def _spawn(self, child: _Child) -> int:
        """Start a child. The returned descriptor yields a byte when the child is ready, and EOF when it dies."""
        ready_read, ready_write = os.pipe()
        inherited = [self.listener.fileno()] if child.listens else []
        try:
            child.process = self._start_module(child.module, [*inherited, ready_write])
        except OSError:
            os.close(ready_read)
            raise
        finally:
            os.close(ready_write)
        child.started_at, child.restart_at = time.monotonic(), None
        # The pipe stays open for the lifetime of the child: see child.py.
        with contextlib.suppress(BrokenPipeError):
            assert child.process.stdin is not None  # noqa: S101
            child.process.stdin.write(settings_line(self.settings))
            child.process.stdin.flush()
        return ready_read

    def _start_module(self, module: str, inherited: list[int]) -> Process:
        # The child inherits the mask, so that only the parent handles Ctrl-C, even while the child starts.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return start_module(module, inherited, self.environment)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def _await_ready(self, ready: int) -> None:
        deadline = time.monotonic() + READY_SECONDS
        with os.fdopen(ready, "rb") as pipe, selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            while not self._stopping and time.monotonic() < deadline:
                events = {key.fileobj for key, _ in selector.select(0.5)}
                if self._wake_read in events:
                    os.read(self._wake_read, 1024)
                if pipe in events:
                    if pipe.read(1) == b"1":
                        return
                    break
        # A stop signal may go to the whole process group, and the child may die before the parent handles it.
        deadline_for_signal = time.monotonic() + GROUP_SIGNAL_SECONDS
        while not self._stopping and (left := deadline_for_signal - time.monotonic()) > 0:
            self._sleep(left)
        if not self._stopping:
            raise StartupError("A hub process did not start. Its last log line says why.")

    def catch_signals(self) -> None:
        """Install handlers so that SIGTERM and SIGINT stop the hub, even during the start."""

        def request_stop(*_: object) -> None:
            self._stopping = True
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"1")

        def child_died(*_: object) -> None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"0")

        signal.signal(signal.SIGTERM, request_stop)
        signal.signal(signal.SIGINT, request_stop)
        signal.signal(signal.SIGCHLD, child_died)

    def _sleep(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            if selector.select(seconds):
                os.read(self._wake_read, 1024)


def _close_pipe(process: Process) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    host = host.strip("[]")
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by connections. uvicorn sends the body after the head, and it would wait for the client's ACK.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        listener.close()
        is_port_problem = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        remedy = (
            "Choose another port: --port or HUBGATE_PORT." if is_port_problem else "Choose another address: --host."
        )
        reason = getattr(error, "strerror", None) or "not a valid host"
        raise StartupError(f"Cannot listen on {host} port {port}: {reason}. {remedy}") from error
    return listener
