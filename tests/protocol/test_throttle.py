"""The rate limiter: 429 with Retry-After, shared by all processes."""

import asyncio

from tests.bed.clock import FrozenClock
from tests.bed.engines import Engine, opened_database
from tests.bed.running_hub import RunningHub

from hubgate.server.errors import TooManyRequests
from hubgate.server.throttle.rate_limiter import Hit, Limit, Limiter
from hubgate.server.worker.sweep import Sweep

LIMIT = Limit("test", 10, 900)


def test_over_the_limit_is_429_until_the_window_ends(hub: RunningHub) -> None:
    with hub.client() as client:
        assert [client.post("/api/test/limited").status_code for _ in range(5)] == [200, 200, 200, 429, 429]
        hub.clock.advance(20)
        refused = client.post("/api/test/limited")
        assert refused.headers["retry-after"] == "40"
        assert refused.json() == {"error": "Too many attempts. Try again in 1 minute."}
        hub.clock.advance(40)
        assert client.post("/api/test/limited").status_code == 200


async def test_concurrent_tries_on_two_machines_do_not_pass_the_limit(engine: Engine, clock: FrozenClock) -> None:
    url = engine.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        limiters = [Limiter(here, clock), Limiter(there, clock)]
        tries = await asyncio.gather(
            *(limiters[i % 2].take(LIMIT, "someone") for i in range(60)), return_exceptions=True
        )
        assert sum(isinstance(outcome, Hit) for outcome in tries) == 10
        assert sum(isinstance(outcome, TooManyRequests) for outcome in tries) == 50
        assert isinstance(await limiters[0].take(LIMIT, "someone else"), Hit)


async def test_refunded_place_does_not_count(engine: Engine, clock: FrozenClock) -> None:
    async with opened_database(engine.fresh_url()) as db:
        limiter = Limiter(db, clock)
        for _ in range(30):
            await limiter.refund(await limiter.take(LIMIT, "honest"))
        clock.advance(901)
        old = await limiter.take(LIMIT, "honest")
        clock.advance(901)
        await limiter.take(LIMIT, "honest")
        await limiter.refund(old)
        row = await db.one("SELECT hits FROM rate_limits")
        assert row is not None
        assert row["hits"] == 1, "giving back a place of an ended window must not free one of the next"


async def test_rejected_try_takes_no_place(engine: Engine, clock: FrozenClock) -> None:
    """After concurrent tries that were all refunded, nothing is counted: neither the accepted ones nor the rest."""
    url = engine.fresh_url()
    async with opened_database(url) as here, opened_database(url) as there:
        limiters = [Limiter(here, clock), Limiter(there, clock)]
        for _ in range(3):
            tries = await asyncio.gather(
                *(limiters[i % 2].take(LIMIT, "honest") for i in range(40)), return_exceptions=True
            )
            places = [outcome for outcome in tries if isinstance(outcome, Hit)]
            assert len(places) == 10
            for place in places:
                await limiters[0].refund(place)
        row = await here.one("SELECT hits FROM rate_limits")
        assert row is not None
        assert row["hits"] == 0


async def test_sweep_drops_only_ended_windows(engine: Engine, clock: FrozenClock) -> None:
    async with opened_database(engine.fresh_url()) as db:
        limiter = Limiter(db, clock)
        await asyncio.gather(*(limiter.take(LIMIT, f"s{i}") for i in range(1200)))
        clock.advance(600)
        await limiter.take(LIMIT, "later")
        clock.advance(400)
        assert [await Sweep(db, clock).step() for _ in range(4)] == [True, True, False, False]
        row = await db.one("SELECT count(*) FROM rate_limits")
        assert row is not None
        assert row[0] == 1
