"""The child's end of the supervisor's pipe.

Standard input brings the settings as one JSON line and then stays open: when it ends, the parent is gone (even by
SIGKILL) and the child stops too, so that no orphan keeps the port. Ctrl-C reaches the whole terminal group; children
are started with it blocked and leave it to the parent.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from hubgate.server.errors import StartupError
from hubgate.server.scopes import Risk, Scope
from hubgate.server.settings import Settings, parse


def settings_line(settings: Settings) -> bytes:
    extra = [[scope.name, scope.text] for scope in settings.extra_scopes]
    return json.dumps({"raw": dict(settings.raw), "extra_scopes": extra}).encode() + b"\n"


def settings_from_parent() -> Settings:
    line = json.loads(sys.stdin.buffer.readline())
    return parse(line["raw"], tuple(Scope(name, Risk.CHANGES, text) for name, text in line["extra_scopes"]))


def stop_event() -> asyncio.Event:
    """Set on SIGTERM, or when the parent is gone."""
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
    # Nobody listens when this child replaces one that died.
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, b"1")
    os.close(descriptor)


def exit_as_child(work: Coroutine[Any, Any, None], run: Callable[[Coroutine[Any, Any, None]], None]) -> NoReturn:
    """Run to the end, by `run`, and leave at once.

    By then everything is closed. An interpreter that winds down slowly would meet granian's threads, one of which then
    aborts the process; and a thread still waiting for a database must not keep it.
    """
    status = 0
    try:
        run(work)
    except StartupError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        status = 1
    except Exception:
        logging.getLogger("hubgate.worker").exception("a process of the hub ended")
        status = 1
    logging.shutdown()
    sys.stderr.flush()
    os._exit(status)
