"""Taking a place in a bucket before the attempt, and giving it back when the attempt was no offence."""

import hashlib
from dataclasses import dataclass

from hubgate.server.clock import SECOND, Clock
from hubgate.server.errors import TooManyRequests
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle import store


@dataclass(frozen=True)
class Limit:
    """At most `most` hits of one subject within `seconds` from the first."""

    name: str
    most: int
    seconds: int
    message: str = "Too many tries. Wait {minutes}."


@dataclass(frozen=True)
class Place:
    """A hit that was counted, so that it can be given back."""

    bucket: bytes
    resets_at: int


@dataclass(frozen=True)
class Limiter:
    db: Database
    clock: Clock

    async def take(self, limit: Limit, subject: str) -> Place:
        """Count one hit; TooManyRequests when the bucket is full. Counting first leaves no gap for parallel tries.

        A try that is refused counts for nothing: otherwise honest ones at the same moment, whose places come back,
        would fill the bucket with those that found it full.
        """
        now = self.clock()
        bucket = _bucket(limit, subject)
        full_until = await store.full_until(self.db, bucket, limit.most, now)
        if full_until is not None:
            # A flood is only read about.
            raise _refusal(limit, full_until - now)
        row = await self.db.batch(store.TAKE, {"bucket": bucket, "now": now, "resets_at": now + limit.seconds * SECOND})
        if row is None:
            raise RuntimeError("counting a hit returned nothing")
        hits, resets_at = row["hits"], row["resets_at"]
        place = Place(bucket, resets_at)
        if hits > limit.most:
            await self.give_back(place)
            raise _refusal(limit, resets_at - now)
        return place

    async def take_in(self, tx: Tx, limit: Limit, subject: str) -> bool:
        """The same in the transaction of what is limited, so that both happen or neither; False when it is full."""
        now = self.clock()
        return await store.take_place(tx, _bucket(limit, subject), limit.most, now, now + limit.seconds * SECOND)

    async def require_place(self, tx: Tx, limit: Limit, subject: str) -> None:
        """The same; TooManyRequests when it is full."""
        if not await self.take_in(tx, limit, subject):
            raise _refusal(limit, await self.seconds_left(tx, limit, subject) * SECOND)

    async def is_full(self, tx: Tx, limit: Limit, subject: str) -> bool:
        """Only a look: nothing is counted."""
        return await store.full_until(tx, _bucket(limit, subject), limit.most, self.clock()) is not None

    async def seconds_left(self, tx: Tx, limit: Limit, subject: str) -> int:
        """Until a full bucket takes hits again."""
        now = self.clock()
        full_until = await store.full_until(tx, _bucket(limit, subject), limit.most, now)
        return max(1, -(-((full_until or now) - now) // SECOND))

    async def give_back(self, place: Place) -> None:
        """For limits that count failures only: the attempt succeeded."""
        await self.db.write(lambda tx: store.give_back(tx, place.bucket, place.resets_at))

    async def keep(self, tx: Tx, place: Place) -> None:
        """Change nothing, but as a write: for the path of a form that has nothing to save and must not be faster."""
        await store.keep(tx, place.bucket)


def _bucket(limit: Limit, subject: str) -> bytes:
    return hashlib.sha256(f"{limit.name}\0{subject}".encode()).digest()[:16]


def _refusal(limit: Limit, remaining: int) -> TooManyRequests:
    seconds = max(1, -(-remaining // SECOND))
    minutes = -(-seconds // 60)
    hours = -(-minutes // 60)
    wait = f"{hours} hours" if hours > 2 else f"{minutes} minute{'s' if minutes > 1 else ''}"
    return TooManyRequests(limit.message.format(minutes=wait), retry_after=seconds)
