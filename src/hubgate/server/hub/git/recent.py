"""What was read lately and cannot change: a path at a commit is the same file for ever.

Kept in this process, the least recently used goes first. Only the event loop touches it.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# What a key and a value take beside their content, about.
_OVERHEAD = 600


class Recent(Generic[K, V]):
    """`most`: bytes in all; `most_each`: what is larger is not kept."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def keep(self, key: K, value: V, size: int) -> None:
        if size > self._most_each or key in self._held:
            return
        size += _OVERHEAD
        self._held[key] = value, size
        self._bytes += size
        while self._bytes > self._most:
            _, (_, dropped) = self._held.popitem(last=False)
            self._bytes -= dropped

    def __len__(self) -> int:
        return len(self._held)
