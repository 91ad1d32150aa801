"""`@webhook_endpoint`: a receiver nobody has to make or start. It begins when the script has come to its end."""

import atexit
import concurrent.futures.thread  # noqa: F401 (registers its own end, which has to come after ours)
import contextlib
import gc
import io
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar, overload

from hubgate.receiver.calling import Handler
from hubgate.receiver.server import WebhooksServer

F = TypeVar("F", bound=Handler)

logger = logging.getLogger("hubgate.receiver")


class _TheOne:
    """The receiver that all decorated functions share."""

    app: WebhooksServer | None = None
    waits_for_the_end = False
    starts_at_exit = True


@overload
def webhook_endpoint(path: F) -> F: ...
@overload
def webhook_endpoint(path: str | None = None) -> Callable[[F], F]: ...
def webhook_endpoint(path: Any = None) -> Any:
    """A decorator: deliveries to `/webhooks/{its name, or path}` call the function.

    All decorated functions share one receiver, which starts when the script ends; `function.launch()` starts it at
    once, as notebooks need.
    """
    if callable(path):
        return _registered(path, None)
    return lambda handler: _registered(handler, path)


def the_app() -> WebhooksServer:
    if _TheOne.app is None:
        _TheOne.app = WebhooksServer()
    return _TheOne.app


def never_at_exit() -> None:
    """For tests: importing a module with decorated functions must not leave a server running at their end."""
    _TheOne.starts_at_exit = False


def _registered(handler: F, path: str | None) -> F:
    app = the_app()
    app.add_webhook(path)(handler)
    if not _TheOne.waits_for_the_end:
        _TheOne.waits_for_the_end = True
        _at_the_end(_start)

    def launch(*given: Any, **named: Any) -> None:
        _TheOne.starts_at_exit = False
        app.launch(*given, **named)

    handler.launch = launch  # type: ignore[attr-defined]
    return handler


def _at_the_end(start: Callable[[], None]) -> None:
    """When the main thread has nothing left to do, but threads can still be started.

    In atexit's own functions they cannot: pools are closed by then, and from 3.12 on no thread starts any more. The
    hook that pools use is called earlier, the latest registered first.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(start)


def _start() -> None:
    """Not after an error, nor where somebody types or a process was forked off to work for another."""
    died = getattr(sys, "last_value", None) is not None
    typing_here = hasattr(sys, "ps1")
    processes = sys.modules.get("multiprocessing.process")
    forked = processes is not None and processes.parent_process() is not None
    if not _TheOne.starts_at_exit or died or typing_here or forked:
        return
    # The first two of 3.12 start no thread once a script is over (cpython issue 113964).
    if (3, 12) <= sys.version_info < (3, 12, 2):
        logger.error("This Python cannot serve at the end of a script. Call .launch() on a decorated function.")
        return
    try:
        the_app().launch()
    except OSError as error:
        said = error.strerror or str(error)
        sys.stderr.write(f"{said} on a decorated function.\n" if said.endswith("launch(port=...)") else f"{said}\n")
        atexit.register(_leave_as_failed)


def _leave_as_failed() -> None:
    """The interpreter chose its status before we were called. What others want done at the end is done first, and what
    files still hold is written.
    """
    atexit.unregister(_leave_as_failed)
    atexit._run_exitfuncs()  # noqa: SLF001 (there is no public name for it)
    for one in gc.get_objects():
        if isinstance(one, io.TextIOBase | io.BufferedIOBase):
            with contextlib.suppress(OSError, ValueError):
                one.flush()
    os._exit(1)
