"""Unused content is deleted without a race with an upload of the same content, on every engine."""

import asyncio
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
from hubgate.server.objects.folder import FolderObjects
from hubgate.server.objects.former import WithFormer
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

    def new_sweep(self) -> UnusedContentSweep:
        return UnusedContentSweep(self.db, self.objects, self.clock, "lfs", self._find_used)

    async def sweep(self, sweep: UnusedContentSweep | None = None) -> None:
        sweep = sweep or self.new_sweep()
        while await sweep.step():
            continue

    async def _find_used(self, _: Tx, keys: Sequence[str]) -> set[str]:
        return self.used & set(keys)


class SlowToDelete(FolderObjects):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.is_deleting, self.may_delete = asyncio.Event(), asyncio.Event()

    async def delete(self, key: str) -> None:
        self.is_deleting.set()
        await self.may_delete.wait()
        await super().delete(key)


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


async def test_content_that_the_store_refuses_to_delete_can_be_uploaded_again(
    engine: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A policy of the bucket, or a hold on an object, may forbid the deletion for ever."""
    stored, held = {key_of(b"%d" % number) for number in range(4)}, {key_of(b"0"), key_of(b"1")}

    def answer(request: StoreRequest) -> bytes:
        if request.method == "GET":
            items = "".join(f"<Contents><Key>hub/{key}</Key><Size>1</Size></Contents>" for key in sorted(stored))
            name = "ListMultipartUploadsResult" if "uploads=" in request.target else "ListBucketResult"
            return response(200, f"<{name}>{items}</{name}>".encode())
        key = request.target.removeprefix("/bucket/hub/")
        if key in held:
            return error(403, "AccessDenied")
        stored.discard(key)
        return response(204)

    with run_far_end(answer) as far_end:
        async with far_end.place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
            sweep = run.new_sweep()
            await run.sweep(sweep)
            run.clock.advance(DAY)
            await run.sweep(sweep)
            assert stored == held, "the other content is deleted"
            assert await run.db.read_long(store.refused_count) == 2
            run.clock.advance(DAY)
            await run.sweep(sweep)
            (said,) = (record.message for record in caplog.records if "refuses to delete" in record.message)
            assert "403 AccessDenied" in said
            for key in held:
                await reserve(run.db, key)
            assert await run.db.read_long(store.refused_count) == 0
            held.clear()
            await run.sweep(sweep)
            run.clock.advance(DAY)
            await run.sweep(sweep)
            assert not stored


async def test_former_store_that_refuses_a_deletion_does_not_block_uploads(engine: Engine, tmp_path: Path) -> None:
    with run_far_end(lambda _: error(403, "AccessDenied")) as far_end:
        async with Place(tmp_path).opened() as current, far_end.place(tmp_path).opened() as former:
            objects = WithFormer(current, former)
            async with sweeping(engine, objects) as run:
                key = await put(current, b"content")
                await run.sweep()
                run.clock.advance(DAY)
                await run.sweep()
                assert await keys_in(objects) == [key], "content of the current store is deleted last"
                await reserve(run.db, key)


async def test_second_sweep_does_not_delete_what_was_uploaded_again(engine: Engine, tmp_path: Path) -> None:
    """Two processes sweep one store: the lease of a loop ends after a minute, and a long step continues."""
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        keys = sorted([await put(objects, b"%d" % number) for number in range(2)])
        await run.sweep()
        run.clock.advance(DAY)
        slow = SlowToDelete(tmp_path)
        sweep = asyncio.create_task(Sweeping(run.db, slow, run.clock, run.used).sweep())
        await slow.is_deleting.wait()
        await run.sweep()
        # The first process still deletes, so nothing can be stored.
        for key in keys:
            with pytest.raises(BeingDeleted):
                await reserve(run.db, key)
        slow.may_delete.set()
        await sweep
        for number in range(2):
            await reserve(run.db, key_of(b"%d" % number))
            run.used.add(await put(objects, b"%d" % number))
        await run.sweep()
        assert await keys_in(objects) == keys


async def test_killed_deletion_is_continued_after_some_minutes(engine: Engine, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as objects, sweeping(engine, objects) as run:
        key = await put(objects, b"content")
        await run.sweep()
        run.clock.advance(DAY)
        slow = SlowToDelete(tmp_path)
        killed = asyncio.create_task(Sweeping(run.db, slow, run.clock).sweep())
        await slow.is_deleting.wait()
        killed.cancel()
        await run.sweep()
        assert await keys_in(objects) == [key]
        run.clock.advance(600)
        await run.sweep()
        assert await keys_in(objects) == []
        await reserve(run.db, key)


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
