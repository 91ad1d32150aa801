"""Unused content is deleted without a race with an upload of the same content, on every engine."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.bed.clock import FrozenClock
from tests.bed.engines import Engine
from tests.objects.misbehaving import StoreRequest, error, response, run_far_end
from tests.objects.stores import Place, key_of, keys_in, put

from hubgate.server.objects import store
from hubgate.server.objects.deletions import BeingDeleted, reserve
from hubgate.server.objects.model import Objects
from hubgate.server.objects.sweep import UnusedContentSweep
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.engines import open_database

DAY = 24 * 3600


@dataclass
class Sweeping:
    db: Database
    objects: Objects
    clock: FrozenClock = field(default_factory=FrozenClock)
    used: set[str] = field(default_factory=set)

    async def sweep(self) -> None:
        sweep = UnusedContentSweep(self.db, self.objects, self.clock, "lfs", self._find_used)
        while await sweep.step():
            continue

    async def _find_used(self, _: Tx, keys: Sequence[str]) -> set[str]:
        return self.used & set(keys)


@asynccontextmanager
async def sweeping(engine: Engine, objects: Objects) -> AsyncIterator[Sweeping]:
    db = await open_database(engine.fresh_url())
    try:
        yield Sweeping(db, objects)
    finally:
        await db.close()


async def test_unused_content_is_deleted_a_day_after_it_was_found(engine: Engine, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        keys = sorted([await put(objects, b"%d" % number) for number in range(5)])
        run.used = set(keys[:2])
        await run.sweep()
        run.clock.advance(DAY - 1)
        await run.sweep()
        assert await keys_in(objects) == keys
        run.clock.advance(1)
        await run.sweep()
        assert await keys_in(objects) == keys[:2]
        assert await store.state(run.db, keys[4]) is None


async def test_content_that_is_used_again_is_not_deleted(engine: Engine, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        key = await put(objects, b"content")
        await run.sweep()
        run.used = {key}
        run.clock.advance(DAY)
        await run.sweep()
        assert await keys_in(objects) == [key]
        run.used = set()
        await run.sweep()
        run.clock.advance(DAY - 1)
        await run.sweep()
        assert await keys_in(objects) == [key], "the day begins again"


async def test_reserved_content_is_safe_for_a_day(engine: Engine, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        key = await put(objects, b"content")
        await run.sweep()
        run.clock.advance(DAY)
        await reserve(run.db, key)
        await run.sweep()
        run.clock.advance(DAY - 1)
        await run.sweep()
        assert await keys_in(objects) == [key]


async def test_interrupted_deletion_is_finished_before_the_content_can_be_stored_again(
    engine: Engine, tmp_path: Path
) -> None:
    key, stored, works = key_of(b"content"), {"content"}, threading.Event()

    def answer(request: StoreRequest) -> bytes:
        if request.method == "GET":
            items = "".join(f"<Contents><Key>hub/{key}</Key><Size>7</Size></Contents>" for _ in stored)
            name = "ListMultipartUploadsResult" if "uploads=" in request.target else "ListBucketResult"
            return response(200, f"<{name}>{items}</{name}>".encode())
        if request.method == "DELETE" and works.is_set():
            stored.clear()
            return response(204)
        return error(503, "SlowDown")

    with run_far_end(answer) as far_end:
        async with (
            far_end.place(tmp_path).opened(retry_seconds=0.0) as objects,
            sweeping(engine, objects) as run,
        ):
            await run.sweep()
            run.clock.advance(DAY)
            await run.sweep()
            assert stored
            with pytest.raises(BeingDeleted):
                await reserve(run.db, key)
            works.set()
            await run.sweep()
            assert not stored
            await reserve(run.db, key)
            assert await store.state(run.db, key) is None


async def test_more_content_than_one_step_is_deleted(engine: Engine, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        used = [await put(objects, b"used %d" % number) for number in range(300)]
        for number in range(900):
            await put(objects, b"%d" % number)
        run.used = set(used)
        await run.sweep()
        run.clock.advance(DAY)
        await run.sweep()
        assert await keys_in(objects) == sorted(used)
