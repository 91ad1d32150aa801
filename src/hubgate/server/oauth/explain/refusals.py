"""Keeping a refusal beside the answer: what goes wrong here, or is too much, changes nothing for the caller."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from hubgate.server.clock import MINUTE, Clock
from hubgate.server.errors import StorageUnavailable
from hubgate.server.logs import redacted
from hubgate.server.oauth.explain import store
from hubgate.server.oauth.explain.model import LONGEST_VALUE, MOST_OF_APP, Refusal, Sent
from hubgate.server.storage.aside import Aside
from hubgate.server.storage.database import Database

# In a minute, by one process. Anyone can have a request refused: that must not become a load on the database, nor push
# out of an app's list what its owner is looking for.
MOST_A_MINUTE, MOST_OF_APP_A_MINUTE = 300, 20
# A device asks until its user has decided: that is no mistake of its app.
_EXPECTED = frozenset({"authorization_pending", "slow_down"})


@dataclass
class Pace:
    """How many were kept in the present minute."""

    began_at: int = 0
    kept: Counter[str] = field(default_factory=Counter)

    def allows(self, client_id: str, now: int) -> bool:
        if now - self.began_at >= MINUTE:
            self.began_at, self.kept = now, Counter()
        if self.kept.total() >= MOST_A_MINUTE or self.kept[client_id] >= MOST_OF_APP_A_MINUTE:
            return False
        self.kept[client_id] += 1
        return True


@dataclass(frozen=True)
class Refusals:
    db: Database
    clock: Clock
    base_url: str
    # How long a refusal waits to be kept, so that whoever follows its error_uri at once finds it.
    longest_wait: float = 0.2
    _pace: Pace = field(default_factory=Pace)

    @cached_property
    def aside(self) -> Aside:
        return Aside(self.db)

    def address(self, request_id: str) -> str:
        """What goes out as `error_uri` (RFC 6749, section 5.2)."""
        return f"{self.base_url}/oauth/explain/{request_id}"

    async def note(
        self, request_id: str, client_id: str, endpoint: str, error: str, description: str, sent: Sent
    ) -> bool:
        """Whether it is kept, so that its address may be told."""
        now = self.clock()
        if error in _EXPECTED or not client_id or not self._pace.allows(client_id, now):
            return False
        # An app known by its document alone has no owner here; and noise must not occupy the writer.
        if not await self._is_registered(client_id):
            return False
        said = redacted(description[:LONGEST_VALUE])
        kept = self.aside.do(self._keep(Refusal(request_id, client_id, now, endpoint, error, said, sent)))
        await asyncio.wait([kept], timeout=self.longest_wait)
        return True

    async def _is_registered(self, client_id: str) -> bool:
        try:
            return await store.is_registered(self.db, client_id)
        except StorageUnavailable:
            return False

    async def _keep(self, refusal: Refusal) -> None:
        await self.db.write(lambda tx: store.add(tx, refusal, MOST_OF_APP))
