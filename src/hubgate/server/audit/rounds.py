"""Going round the organizations that have something to do, a few in each step of a background loop."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

# One step stays far below the time for which a loop is leased.
ORGANIZATIONS_AT_ONCE = 20


@dataclass
class Rounds:
    """`following` finds the next organization by id; `work` does a piece for it and says whether more is left."""

    following: Callable[[str], Awaitable[str | None]]
    work: Callable[[str], Awaitable[bool]]
    # Where this round has come to, and whether somebody will have work left when it ends.
    _after: str = field(default="", init=False)
    _more: bool = field(default=False, init=False)

    async def step(self) -> bool:
        """Whether to go on at once. One with a hundred thousand entries waits for its next turn like all others."""
        for _ in range(ORGANIZATIONS_AT_ONCE):
            org_id = await self.following(self._after)
            if org_id is None:
                more, self._after, self._more = self._more, "", False
                return more
            # Before it is tried: one that fails must not keep the others.
            self._after = org_id
            if await self.work(org_id):
                self._more = True
        return True
