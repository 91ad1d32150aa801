"""`@webhook_endpoint`: a shared receiver that is created implicitly and starts when the script ends."""

import atexit
import concurrent.futures.thread  # noqa: F401 (registers its exit hook, which must run after ours)
import contextlib
import gc
import io
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from hubgate.receiver.handlers import Handler
from hubgate.receiver.server import WebhooksServer

F = TypeVar("F", bound=Handler)

logger = logging.getLogger("hubgate.receiver")


class _Shared:
    """The state of the receiver that all decorated functions share."""

    app: WebhooksServer | None = None
    has_exit_hook = False
    starts_at_exit = True


@overload
def webhook_endpoint(path: F) -> F: ...
@overload
def webhook_endpoint(path: str | None = None) -> Callable[[F], F]: ...
def webhook_endpoint(path: Any = None) -> Any:
    """Decorator: call the function for deliveries to `/webhooks/{path}`. The default path is the function's name.

    All decorated functions share a receiver, which starts when the script ends. In a notebook, call
    `function.launch()` to start the receiver immediately.
    """
    if callable(path):
        return _register(path, None)
    return lambda handler: _register(handler, path)


def shared_app() -> WebhooksServer:
    if _Shared.app is None:
        _Shared.app = WebhooksServer()
    return _Shared.app


def disable_start_at_exit() -> None:
    """Do not start the receiver at exit. For tests that import a module with decorated functions."""
    _Shared.starts_at_exit = False


def _register(handler: F, path: str | None) -> F:
    app = shared_app()
    app.add_webhook(path)(handler)
    if not _Shared.has_exit_hook:
        _Shared.has_exit_hook = True
        _call_at_exit(_start)

    def launch(*given: Any, **named: Any) -> None:
        _Shared.starts_at_exit = False
        app.launch(*given, **named)

    handler.launch = launch  # type: ignore[attr-defined]
    return handler


def _call_at_exit(start: Callable[[], None]) -> None:
    """Call `start` when the main thread has finished, while threads can still be started.

    Functions of atexit run too late: thread pools are closed by then, and since Python 3.12 no thread can be started.
    The hook that thread pools use runs earlier, in reverse order of registration.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(start)


def _start() -> None:
    """Start the receiver, unless the script failed, or runs in an interactive session or a child process."""
    failed = getattr(sys, "last_value", None) is not None
    interactive = hasattr(sys, "ps1")
    processes = sys.modules.get("multiprocessing.process")
    forked = processes is not None and processes.parent_process() is not None
    if not _Shared.starts_at_exit or failed or interactive or forked:
        return
    # 3.12.0 and 3.12.1 cannot start threads once the script has ended (cpython issue 113964).
    if (3, 12) <= sys.version_info < (3, 12, 2):
        logger.error(
            "This version of Python cannot serve at the end of a script. Call .launch() on a decorated function."
        )
        return
    try:
        shared_app().launch()
    except OSError as error:
        message = error.strerror or str(error)
        sys.stderr.write(
            f"{message} on a decorated function.\n" if message.endswith("launch(port=...)") else f"{message}\n"
        )
        atexit.register(_exit_as_failed)


def _exit_as_failed() -> None:
    """Exit with status 1, after running other exit functions and flushing files.

    The interpreter has already chosen its exit status when this is called.
    """
    atexit.unregister(_exit_as_failed)
    atexit._run_exitfuncs()  # noqa: SLF001 (there is no public name for it)
    for file in gc.get_objects():
        if isinstance(file, io.TextIOBase | io.BufferedIOBase):
            with contextlib.suppress(OSError, ValueError):
                file.flush()
    os._exit(1)
