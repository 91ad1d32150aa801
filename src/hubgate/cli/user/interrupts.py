"""Ctrl-C and SIGTERM for commands that run until they are stopped: work in progress is finished first."""

import contextlib
import signal
from collections.abc import Iterator


class Interrupts:
    """Raises KeyboardInterrupt for both signals. Inside `deferred`, the first signal takes effect afterwards, and
    a second one at once.
    """

    def __init__(self) -> None:
        self._is_deferred = False
        self._is_pending = False

    @contextlib.contextmanager
    def handled(self) -> Iterator[None]:
        names = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(name, self._handle) for name in names]
        try:
            yield
        finally:
            for name, handler in zip(names, before, strict=True):
                signal.signal(name, handler)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        self._is_deferred = True
        try:
            yield
        finally:
            self._is_deferred = False
        if self._is_pending:
            raise KeyboardInterrupt

    def _handle(self, *_: object) -> None:
        if self._is_deferred and not self._is_pending:
            self._is_pending = True
        else:
            raise KeyboardInterrupt
