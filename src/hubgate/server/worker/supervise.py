"""The parent of a running hub: prepares the ground, starts the children, keeps them alive, stops them in order.

It holds the listening socket and does no work of its own, so that nothing but a signal ends it.
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
from dataclasses import dataclass, field

from hubgate.server.errors import StartupError
from hubgate.server.settings import Settings
from hubgate.server.worker.child import settings_line
from hubgate.server.worker.servers import BACKLOG

log = logging.getLogger("hubgate.worker")

# The contract gives what is in flight ten seconds; the servers give up a little before that.
STOP_SECONDS = 9.0
GROUP_SECONDS = 0.2
READY_SECONDS = 30.0
FIRST_RESTART_SECONDS = 0.2
LONGEST_RESTART_SECONDS = 10.0


@dataclass(frozen=True)
class Modules:
    """What the children run."""

    web: str = "hubgate.server.worker.web"
    deliver: str = "hubgate.server.worker.deliver"


MODULES = Modules()


@dataclass
class _Child:
    module: str
    listens: bool
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    restart_at: float | None = None
    pause: float = FIRST_RESTART_SECONDS


@dataclass
class Supervisor:
    settings: Settings
    listener: socket.socket
    modules: Modules = MODULES
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self._children = [_Child(self.modules.web, listens=True) for _ in range(self.settings.workers)]
        if self.settings.deliver == "child":
            self._children.append(_Child(self.modules.deliver, listens=False))
        self._stopping = False
        # A signal writes to this pipe, so that waiting for one and for time is the same wait.
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def start(self) -> bool:
        """True once all children serve, False when asked to stop before that; StartupError leaves none behind."""
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
        """Until SIGTERM or SIGINT: start again whatever dies, more slowly the faster it dies."""
        while not self._stopping:
            self._sleep(0.5)
            if self._stopping:
                break
            for child in self._children:
                self._revive(child)
        self.stop()

    def stop(self) -> None:
        alive = [child.process for child in self._children if child.process and child.process.poll() is None]
        for process in alive:
            process.send_signal(signal.SIGTERM)
        # Connections still in the accept queue are refused now rather than left hanging.
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

    def _revive(self, child: _Child) -> None:
        if child.process is None or child.process.poll() is None:
            return
        now = time.monotonic()
        if child.restart_at is None:
            if now - child.started_at > LONGEST_RESTART_SECONDS:
                child.pause = FIRST_RESTART_SECONDS
            child.restart_at = now + child.pause
            child.pause = min(child.pause * 2, LONGEST_RESTART_SECONDS)
            role = "web" if child.listens else "background"
            status = child.process.returncode
            log.error("%s process %d ended with status %d; starting another", role, child.process.pid, status)
        if now >= child.restart_at:
            _close_pipe(child.process)
            try:
                os.close(self._spawn(child))
            except OSError:
                # No memory or descriptors just now, or the installation is being replaced: later, then.
                log.exception("could not start a process")
                child.restart_at = now + child.pause

    def _spawn(self, child: _Child) -> int:
        """Start a child; the returned descriptor becomes readable when it is ready and ends when it dies."""
        ready_read, ready_write = os.pipe()
        inherited = [self.listener.fileno()] if child.listens else []
        try:
            child.process = self._popen(child.module, [*inherited, ready_write])
        except OSError:
            os.close(ready_read)
            raise
        finally:
            os.close(ready_write)
        child.started_at, child.restart_at = time.monotonic(), None
        # The pipe stays open for the life of the child: see child.py.
        with contextlib.suppress(BrokenPipeError):
            assert child.process.stdin is not None  # noqa: S101
            child.process.stdin.write(settings_line(self.settings))
            child.process.stdin.flush()
        return ready_read

    def _popen(self, module: str, inherited: list[int]) -> "subprocess.Popen[bytes]":
        # A child inherits the mask: Ctrl-C in the terminal is the parent's to handle from the first moment on.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return subprocess.Popen(
                # -P keeps the working folder off the path: a file named json.py there must not become ours.
                [sys.executable, "-P", "-m", module, *map(str, inherited)],
                stdin=subprocess.PIPE,
                pass_fds=inherited,
                env=self.environment,
            )
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
        # An order to stop may be meant for the whole group, and the child may have died of it before we hear.
        heard_by = time.monotonic() + GROUP_SECONDS
        while not self._stopping and (left := heard_by - time.monotonic()) > 0:
            self._sleep(left)
        if not self._stopping:
            raise StartupError("A process of the hub did not come up. Its own last line says why.")

    def catch_signals(self) -> None:
        """SIGTERM and SIGINT are remembered from here on, however far the start has come."""

        def ask_to_stop(*_: object) -> None:
            self._stopping = True
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"1")

        def child_died(*_: object) -> None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"0")

        signal.signal(signal.SIGTERM, ask_to_stop)
        signal.signal(signal.SIGINT, ask_to_stop)
        signal.signal(signal.SIGCHLD, child_died)

    def _sleep(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_read, selectors.EVENT_READ)
            if selector.select(seconds):
                os.read(self._wake_read, 1024)


def _close_pipe(process: "subprocess.Popen[bytes]") -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    host = host.strip("[]")
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, UnicodeError) as error:
        listener.close()
        taken = getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES)
        cure = "Choose another port: --port or HUBGATE_PORT." if taken else "Choose another address: --host."
        reason = getattr(error, "strerror", None) or "not a host"
        raise StartupError(f"Cannot listen on {host} port {port}: {reason}. {cure}") from error
    return listener
