"""Background loops: one runner among all processes, also after a death, without needless writes."""

import asyncio

from tests.bed.clock import FrozenClock
from tests.bed.engines import Engine, opened_database

from hubgate.server.clock import SECOND
from hubgate.server.storage.database import Database
from hubgate.server.worker import store
from hubgate.server.worker.loops import LEASE_SECONDS, Loop, LoopRunner

ACQUIRED = "SELECT expires_at FROM leases WHERE name = 'test'"


class Counted:
    """A loop that counts its steps, each followed by a pause in which another may run, and stops all after `limit`."""

    def __init__(self, clock: FrozenClock, stop: asyncio.Event, limit: int, seconds: float = 0.0) -> None:
        self.steps = 0
        self._clock, self._stop, self._limit, self._seconds = clock, stop, limit, seconds

    async def step(self) -> bool:
        self.steps += 1
        self._clock.advance(self._seconds)
        if self.steps >= self._limit:
            self._stop.set()
        return False

    def loop(self) -> Loop:
        return Loop("test", every_seconds=0.01, step=self.step)


async def until_of(db: Database) -> int | None:
    row = await db.one(ACQUIRED)
    return row["expires_at"] if row else None


async def test_one_of_two_runners_holds_the_lease(storage: Engine, clock: FrozenClock) -> None:
    url, stop = storage.fresh_url(), asyncio.Event()
    async with opened_database(url) as here, opened_database(url) as there:
        first, second = Counted(clock, stop, 30), Counted(clock, stop, 30)
        await asyncio.gather(
            LoopRunner(here, clock, stop).run([first.loop()]), LoopRunner(there, clock, stop).run([second.loop()])
        )
        # The other may begin a last step when the first releases the lease, and not before.
        assert max(first.steps, second.steps) == 30
        assert min(first.steps, second.steps) <= 1
        assert await until_of(here) is None, "handed back"


async def test_dead_holder_is_replaced(storage: Engine, clock: FrozenClock) -> None:
    stop = asyncio.Event()
    async with opened_database(storage.fresh_url()) as db:
        expires_at = clock() + LEASE_SECONDS * SECOND
        assert await db.write(lambda tx: store.acquire(tx, "test", "the dead", clock(), expires_at))
        follower = Counted(clock, stop, 1)
        asked = 0

        def watched() -> int:
            nonlocal asked
            asked += 1
            return clock()

        running = asyncio.create_task(LoopRunner(db, watched, stop).run([follower.loop()]))
        while asked < 4:
            await asyncio.sleep(0.01)
        assert follower.steps == 0, "it tried, and another process had the lease"
        clock.advance(LEASE_SECONDS)
        await asyncio.wait_for(running, 60)
        assert follower.steps == 1


async def test_clock_set_back_stops_no_loop(storage: Engine, clock: FrozenClock) -> None:
    """A living holder continues, and nobody waits for a dead one until the clock has caught up."""
    stop = asyncio.Event()
    async with opened_database(storage.fresh_url()) as db:
        expires_at = clock() + LEASE_SECONDS * SECOND
        assert await db.write(lambda tx: store.acquire(tx, "test", "the dead", clock(), expires_at))
        clock.advance(-24 * 3600)
        follower = Counted(clock, stop, 3, seconds=-3600)
        await asyncio.wait_for(LoopRunner(db, clock, stop).run([follower.loop()]), 60)
        assert follower.steps == 3
        # Small clock differences between machines do not matter.
        expires_at = clock() + LEASE_SECONDS * SECOND
        assert await db.write(lambda tx: store.acquire(tx, "test", "ahead", clock(), expires_at))
        behind = clock() - LEASE_SECONDS * SECOND
        assert not await db.write(lambda tx: store.acquire(tx, "test", "behind", behind, clock()))


async def test_holder_renews_in_time_and_not_at_every_step(storage: Engine, clock: FrozenClock) -> None:
    stop, left = asyncio.Event(), []
    async with opened_database(storage.fresh_url()) as db:
        counted = Counted(clock, stop, 100, seconds=1)

        async def step() -> bool:
            left.append((await until_of(db) or 0) - clock())
            await counted.step()
            return True

        await LoopRunner(db, clock, stop).run([Loop("test", 0.01, step)])
    assert len(left) == 100
    assert min(left) >= LEASE_SECONDS * SECOND // 2, "half of it is left when a step begins"
    assert left.count(LEASE_SECONDS * SECOND) == 4, "it was renewed every thirty steps of a second"
