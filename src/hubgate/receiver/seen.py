"""The deliveries that have been processed, in memory, to detect repeated ones with `ack="after"`."""

import threading
from collections import OrderedDict
from enum import Enum, auto

MOST = 10_000
Key = tuple[str, str]


class Standing(Enum):
    NEW = auto()
    RUNNING = auto()
    DONE = auto()


class Seen:
    """Deliveries by address and delivery id. Safe to use from several event loops in several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._running: set[Key] = set()
        self._done: OrderedDict[Key, None] = OrderedDict()

    def begin(self, key: Key) -> Standing:
        """NEW for the first caller, who must run the delivery; then RUNNING for others until `end`."""
        with self._lock:
            if key in self._running:
                return Standing.RUNNING
            if key in self._done:
                return Standing.DONE
            self._running.add(key)
            return Standing.NEW

    def end(self, key: Key, *, succeeded: bool) -> None:
        """Record the outcome. A failed delivery is removed, so that it can run again."""
        with self._lock:
            self._running.discard(key)
            if succeeded:
                self._done[key] = None
                while len(self._done) > self._most:
                    self._done.popitem(last=False)
