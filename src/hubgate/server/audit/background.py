"""Round-robin over organizations that have work, a few in each step of a background loop."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

# Small enough that a step takes far less time than the lease of a loop.
ORGANIZATIONS_AT_ONCE = 20


@dataclass
class AuditBackground:
    """A round-robin. `following` finds the next organization by id; `work` does a part of its work and returns whether
    more is left."""

    following: Callable[[str], Awaitable[str | None]]
    work: Callable[[str], Awaitable[bool]]
    # The last organization of this round so far, and whether any has work left for the next round.
    _after: str = field(default="", init=False)
    _more: bool = field(default=False, init=False)

    async def step(self) -> bool:
        """Run one step; True if the next step should follow at once. An organization with much work waits its turn."""
        for _ in range(ORGANIZATIONS_AT_ONCE):
            org_id = await self.following(self._after)
            if org_id is None:
                more, self._after, self._more = self._more, "", False
                return more
            # Set before the work: an organization that fails must not block the others.
            self._after = org_id
            if await self.work(org_id):
                self._more = True
        return True
