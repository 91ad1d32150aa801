"""Child processes forked from the supervisor, which has imported their modules: a new Python process would import all
of them again, which takes longer than everything else at the start.

A forked child has the pipes, descriptors and signals of a new process, and nothing else of its parent. A process with
other threads is not forked, because a lock that another thread holds would stay locked in the child. Neither is any
process on macOS, whose system libraries do not support it.
"""

import contextlib
import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from hubgate.server import logs

# The name that `ps` and `top` show, by the last part of the module's name; Linux allows 15 bytes.
_NAMES = {"web": "hubgate-web", "background": "hubgate-deliver", "spaces": "hubgate-spaces"}
_CAUGHT_BY_PARENT = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
_WAIT_INTERVAL = 0.005
_THREAD_EXIT_SECONDS = 1.0


class ForkedProcess:
    """A forked child, with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int, stdin: IO[bytes]) -> None:
        self.pid, self.stdin = pid, stdin
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_WAIT_INTERVAL)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_fork() -> bool:
    """Whether this process may be forked: it has a single thread, also counting those that Python does not know."""
    tasks = Path("/proc/self/task")
    deadline = time.monotonic() + _THREAD_EXIT_SECONDS
    while tasks.exists() and threading.active_count() == 1 and time.monotonic() < deadline:
        if len(list(tasks.iterdir())) == 1:
            return True
        # The system still lists a thread of the preparation that has just ended.
        time.sleep(_WAIT_INTERVAL)
    return False


def fork_module(module: str, inherited: Sequence[int], environment: Mapping[str, str]) -> ForkedProcess:
    """Run `main()` of a module in a forked child that inherits these descriptors; their numbers are its arguments."""
    # Before the fork, so that a child that replaces a dead one need not import it again. What then exists is
    # permanent: garbage collection would search it again and again, and copy its pages in the child.
    gc.disable()
    importlib.import_module(module)
    gc.freeze()
    gc.enable()
    # Otherwise parent and child would both write what is buffered.
    logs.flush()
    sys.stdout.flush()
    read, write = os.pipe()
    # The child must not handle a signal with the parent's handler.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _CAUGHT_BY_PARENT)
    try:
        pid = os.fork()
        if pid == 0:
            _run_child(module, read, inherited, environment, blocked)
    except OSError:
        # Out of memory or processes: the parent tries again, for as long as it lasts.
        os.close(write)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(read)
    return ForkedProcess(pid, os.fdopen(write, "wb"))


def _run_child(
    module: str, stdin: int, inherited: Sequence[int], environment: Mapping[str, str], mask: set[int | signal.Signals]
) -> NoReturn:
    try:
        for caught in _CAUGHT_BY_PARENT:
            signal.signal(caught, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # `sys.stdin` reads from this number, and the parent has not read from it.
        os.dup2(stdin, 0)
        # Above all the parent's ends of pipes: a child that holds one would not notice the parent's death.
        _close_all_except({0, 1, 2, *inherited})
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [module, *map(str, inherited)]
        _set_name(module)
        importlib.import_module(module).main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # Never returns into the parent's code.
        os._exit(1)


def _close_all_except(wanted: set[int]) -> None:
    for descriptor in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        if descriptor not in wanted:
            # One of them was the listing itself.
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _set_name(module: str) -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(_NAMES.get(module.rpartition(".")[2], "hubgate"))
