"""Which deliveries ran, in memory: what `ack="after"` knows them again by."""

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
    """Keyed by address and delivery id. Requests may come from several loops in several threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._running: set[Key] = set()
        self._done: OrderedDict[Key, None] = OrderedDict()

    def begin(self, key: Key) -> Standing:
        """NEW once, to the one who shall run it; then RUNNING to others until `end`."""
        with self._lock:
            if key in self._running:
                return Standing.RUNNING
            if key in self._done:
                return Standing.DONE
            self._running.add(key)
            return Standing.NEW

    def end(self, key: Key, *, succeeded: bool) -> None:
        """One that failed is forgotten, so that it runs again."""
        with self._lock:
            self._running.discard(key)
            if succeeded:
                self._done[key] = None
                while len(self._done) > self._most:
                    self._done.popitem(last=False)
