"""A cache of recently read values that cannot change, such as a path at a commit.

Stored in this process; the least recently used entry is evicted first. Only the event loop accesses the cache.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Approximate bytes that an entry takes in addition to its content.
_OVERHEAD = 600


class Recent(Generic[K, V]):
    """LRU cache limited by size. `most`: bytes in total; `most_each`: larger values are not cached."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        if found is None:
            return None
        self._entries.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        if size > self._most_each or key in self._entries:
            return
        size += _OVERHEAD
        self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self._most:
            _, (_, dropped_size) = self._entries.popitem(last=False)
            self._bytes -= dropped_size

    def __len__(self) -> int:
        return len(self._entries)
