"""Slots for git programs: limited in total and per caller, and always released."""

import asyncio

import pytest

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.slots import Slots


async def test_no_caller_gets_more_than_its_share() -> None:
    places, running, limit = Slots(4, 2), 0, 0

    async def work(caller: str) -> None:
        nonlocal running, limit
        async with places.acquire(caller):
            running += 1
            limit = max(limit, running)
            for _ in range(5):
                await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(work("greedy") for _ in range(20)))
    assert limit == 2
    limit = 0
    await asyncio.gather(*(work(str(number)) for number in range(20)))
    assert limit == 4


async def test_caller_that_waits_too_long_gets_an_error() -> None:
    places = Slots(1, 1, longest_wait=0.01)
    async with places.acquire("one"):
        with pytest.raises(Unavailable):
            async with places.acquire("two"):
                pass
    async with places.acquire("two"):
        pass


async def test_slot_is_released_after_a_failure() -> None:
    places = Slots(1, 1)
    for _ in range(3):
        with pytest.raises(ValueError):
            async with places.acquire("one"):
                raise ValueError
    waiting = asyncio.create_task(_hold(places))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(60), places.acquire("two"):
        pass


async def _hold(places: Slots) -> None:
    async with places.acquire("one"):
        await asyncio.Event().wait()
