"""Rate limits: count a hit before the attempt, and refund the hit if the attempt should not count."""

import hashlib

from msgspec import Struct

from hubgate.server.clock import SECOND, Clock
from hubgate.server.errors import TooManyRequests
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle import store


class Limit(Struct, frozen=True):
    """A rate limit: at most `max_hits` hits per subject within `seconds` from the first hit."""

    name: str
    max_hits: int
    seconds: int
    message: str = "Too many attempts. Try again in {duration}."


class Hit(Struct, frozen=True):
    """A counted hit, which can be refunded."""

    bucket: bytes
    resets_at: int


class Limiter(Struct, frozen=True):
    db: Database
    clock: Clock

    async def take(self, limit: Limit, subject: str) -> Hit:
        """Count one hit; TooManyRequests when the bucket is full. Counting first leaves no gap for parallel attempts.

        A rejected attempt is not counted: otherwise concurrent legitimate attempts, whose hits are refunded later,
        would leave the bucket full of rejected attempts.
        """
        now = self.clock()
        bucket = _bucket(limit, subject)
        full_until = await store.full_until(self.db, bucket, limit.max_hits, now)
        if full_until is not None:
            # A flood costs reads only, no writes.
            raise _refusal(limit, full_until - now)
        row = await self.db.batch(store.TAKE, {"bucket": bucket, "now": now, "resets_at": now + limit.seconds * SECOND})
        if row is None:
            raise RuntimeError("counting a hit returned nothing")
        hits, resets_at = row["hits"], row["resets_at"]
        hit = Hit(bucket, resets_at)
        if hits > limit.max_hits:
            await self.refund(hit)
            raise _refusal(limit, resets_at - now)
        return hit

    async def count_in(self, tx: Tx, limit: Limit, subject: str) -> bool:
        """Count one hit in the transaction of the limited action, so that both commit or neither; False when full."""
        now = self.clock()
        return await store.count(tx, _bucket(limit, subject), limit.max_hits, now, now + limit.seconds * SECOND)

    async def require_in(self, tx: Tx, limit: Limit, subject: str) -> None:
        """Like `count_in`, but raises TooManyRequests when the bucket is full."""
        if not await self.count_in(tx, limit, subject):
            raise _refusal(limit, await self.seconds_left(tx, limit, subject) * SECOND)

    async def is_full(self, tx: Tx, limit: Limit, subject: str) -> bool:
        """Whether the bucket is full; nothing is counted."""
        return await store.full_until(tx, _bucket(limit, subject), limit.max_hits, self.clock()) is not None

    async def seconds_left(self, tx: Tx, limit: Limit, subject: str) -> int:
        """Seconds until a full bucket accepts hits again, at least 1."""
        now = self.clock()
        full_until = await store.full_until(tx, _bucket(limit, subject), limit.max_hits, now)
        return max(1, -(-((full_until or now) - now) // SECOND))

    async def refund(self, hit: Hit) -> None:
        """Refund the hit of an attempt that should not count, such as a successful sign-in."""
        await self.db.write(lambda tx: store.refund(tx, hit.bucket, hit.resets_at))

    async def touch(self, tx: Tx, hit: Hit) -> None:
        """Write without changing anything, so that a form with nothing to save does not respond faster."""
        await store.touch(tx, hit.bucket)


def _bucket(limit: Limit, subject: str) -> bytes:
    return hashlib.sha256(f"{limit.name}\0{subject}".encode()).digest()[:16]


def _refusal(limit: Limit, remaining: int) -> TooManyRequests:
    seconds = max(1, -(-remaining // SECOND))
    return TooManyRequests(limit.message.format(duration=_in_words(seconds)), retry_after=seconds)


def _in_words(seconds: int) -> str:
    """A duration in words, rounded up to minutes, or above two hours to hours."""
    unit, noun = (60, "minute") if seconds <= 2 * 60 * 60 else (60 * 60, "hour")
    count = -(-seconds // unit)
    return f"{count} {noun}{'s' if count > 1 else ''}"
