"""Queues the commits to a branch within a process. Without a queue each commit that lands forces all others to rewrite
their trees: seventy concurrent commits wrote two thousand trees. Between processes, and against pushes, the
compare-and-swap of the ref decides.
"""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class BranchLocks:
    # A lock exists as long as a task owns it or waits for it.
    _locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def on(self, repo_id: str, ref: str) -> asyncio.Lock:
        """The lock of a branch. Waiting tasks get it in order of arrival."""
        return self._locks.setdefault((repo_id, ref), asyncio.Lock())
