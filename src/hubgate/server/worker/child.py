"""A child process: its end of the supervisor's pipe, and its limit on open files.

The parent writes the settings to standard input as one JSON line and leaves the pipe open. End of file means that the
parent has died, possibly of SIGKILL; the child then stops, so that no orphan occupies the port. Ctrl-C sends SIGINT to
the terminal's whole foreground process group; children start with SIGINT blocked, and the parent handles it.
"""

import asyncio
import contextlib
import importlib.util
import json
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from hubgate.server import logs
from hubgate.server.errors import StartupError
from hubgate.server.scopes import Risk, Scope
from hubgate.server.settings import Settings, parse

# Of processes that nobody waits for: requests to the hub come first.
NICENESS = 10


def raise_file_limit() -> None:
    """Raise the limit on open files and connections to the maximum that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = hard if hard != resource.RLIM_INFINITY else 65536
    # macOS reports a hard limit that it then rejects.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, target), hard))


def settings_line(settings: Settings) -> bytes:
    extra = [[scope.name, scope.text] for scope in settings.extra_scopes]
    return json.dumps({"raw": dict(settings.raw), "extra_scopes": extra}).encode() + b"\n"


def settings_from_parent() -> Settings:
    line = json.loads(sys.stdin.buffer.readline())
    return parse(line["raw"], tuple(Scope(name, Risk.CHANGES, text) for name, text in line["extra_scopes"]))


def stop_event() -> asyncio.Event:
    """An event that is set on SIGTERM, or when the parent has died."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)

    def watch_parent() -> None:
        while os.read(sys.stdin.fileno(), 1):
            continue
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=watch_parent, daemon=True).start()
    return stop


def report_ready(descriptor: int) -> None:
    # The parent does not read the pipe if this child replaces a dead one.
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, b"1")
    os.close(descriptor)


def run_with_uvloop(work: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed: deliveries use a quarter less CPU time on it, other changes a twentieth."""
    if importlib.util.find_spec("uvloop") is None:
        asyncio.run(work)
        return
    import uvloop

    uvloop.run(work)


def run_and_exit(work: Coroutine[Any, Any, None], run: Callable[[Coroutine[Any, Any, None]], None]) -> NoReturn:
    """Run `work` with `run`, then exit without interpreter shutdown.

    All resources are closed by then. During a regular shutdown, one of granian's threads aborts the process, and a
    thread that waits for the database would delay the exit.
    """
    status = 0
    try:
        run(work)
    except StartupError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        status = 1
    except Exception:
        logging.getLogger("hubgate.worker").exception("the process failed")
        status = 1
    logs.flush()
    sys.stderr.flush()
    os._exit(status)
