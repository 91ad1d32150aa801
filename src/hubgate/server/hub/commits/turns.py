"""Commits to one branch take turns within a process. Without them each that lands sends all others back to their trees:
seventy at once wrote two thousand, and the last ones waited for all of that. Between processes, and beside pushes, the
branch itself decides, as it does anyway.
"""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class Turns:
    # An entry lives as long as somebody holds it or waits for it.
    _locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def on(self, repo_id: str, ref: str) -> asyncio.Lock:
        """Given to those who wait in the order in which they came."""
        return self._locks.setdefault((repo_id, ref), asyncio.Lock())
