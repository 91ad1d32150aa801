"""Stores rejected requests in the background, and reads them.

A failure here does not fail the response. Beyond the rate limit nothing is stored, and the response has no `error_uri`.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
from msgspec import Struct

from hubgate.server.clock import MINUTE, Clock
from hubgate.server.errors import StorageUnavailable
from hubgate.server.logs import redacted
from hubgate.server.oauth.explain import store
from hubgate.server.oauth.explain.model import LONGEST_VALUE, MAX_PER_APP, RETAINED_FOR, Refusal, SentParameters
from hubgate.server.storage.background_writes import BackgroundWrites
from hubgate.server.storage.database import Database

# Per minute and process. Anyone can send invalid requests: they must not load the database or displace the entries an
# owner is looking for.
MAX_PER_MINUTE, MAX_PER_APP_AND_MINUTE = 300, 20
# A device polls until its user has decided; these errors are not mistakes of the app.
_POLLING_ERRORS = frozenset({"authorization_pending", "slow_down"})


@dataclass
class RateLimit:
    """A rate limit per minute, in total and per app."""

    began_at: int = 0
    counted: Counter[str] = field(default_factory=Counter)

    def allows(self, client_id: str, now: int) -> bool:
        if now - self.began_at >= MINUTE:
            self.began_at, self.counted = now, Counter()
        if self.counted.total() >= MAX_PER_MINUTE or self.counted[client_id] >= MAX_PER_APP_AND_MINUTE:
            return False
        self.counted[client_id] += 1
        return True


class Refusals(Struct, frozen=True, dict=True):
    db: Database
    clock: Clock
    base_url: str
    # Seconds that a response waits for the write, so that its error_uri works at once.
    longest_wait: float = 0.2
    _rate_limit: RateLimit = msgspec.field(default_factory=RateLimit)

    @cached_property
    def background_writes(self) -> BackgroundWrites:
        return BackgroundWrites(self.db)

    def error_uri(self, request_id: str) -> str:
        """The `error_uri` of a response (RFC 6749, section 5.2)."""
        return f"{self.base_url}/oauth/explain/{request_id}"

    async def record(
        self, request_id: str, client_id: str, endpoint: str, error: str, description: str, sent: SentParameters
    ) -> bool:
        """Store a rejected request; True if its `error_uri` may be sent."""
        now = self.clock()
        if error in _POLLING_ERRORS or not client_id or not self._rate_limit.allows(client_id, now):
            return False
        # Without an owner nobody reads this, and noise must not occupy the writer.
        if not await self._has_owner(client_id):
            return False
        text = redacted(description[:LONGEST_VALUE])
        write = self.background_writes.run(
            self._store(Refusal(request_id, client_id, now, endpoint, error, text, sent))
        )
        await asyncio.wait([write], timeout=self.longest_wait)
        return True

    async def of_app(self, client_id: str) -> list[Refusal]:
        """The rejected requests of an app, newest first."""
        since = self.clock() - RETAINED_FOR
        return await self.db.read_long(lambda tx: store.of_app(tx, client_id, since, MAX_PER_APP))

    async def find(self, request_id: str) -> Refusal | None:
        return await store.find(self.db, request_id, self.clock() - RETAINED_FOR)

    async def _has_owner(self, client_id: str) -> bool:
        try:
            return await store.has_owner(self.db, client_id)
        except StorageUnavailable:
            return False

    async def _store(self, refusal: Refusal) -> None:
        await self.db.write(lambda tx: store.add(tx, refusal, MAX_PER_APP))
