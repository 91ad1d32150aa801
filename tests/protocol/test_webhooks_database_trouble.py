"""Deliveries while the database fails: units whose outcome is unknown, and steps that meet in an unfortunate order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import Receiver, create_webhook

from hubgate.server.errors import OutcomeUnknown
from hubgate.server.resources import Hub
from hubgate.server.storage.signals import Signal
from hubgate.server.webhooks.delivering import windows_store
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.shards.ownership import Ownership


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


@dataclass
class Unlucky:
    """A database whose connection breaks while the next long unit is committed, which is committed nevertheless."""

    db: Any
    is_armed: bool = False
    hangs: asyncio.Event | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    async def write_long(self, unit: Callable[[Any], Awaitable[Any]]) -> Any:
        result = await self.db.write_long(unit)
        if self.is_armed:
            self.is_armed = False
            raise OutcomeUnknown
        return result

    async def read_long(self, unit: Callable[[Any], Awaitable[Any]]) -> Any:
        if self.hangs is not None:
            await self.hangs.wait()
        return await self.db.read_long(unit)


def unlucky(deliverer: Deliverer) -> Unlucky:
    db = Unlucky(deliverer.webhooks.db)
    deliverer.webhooks = replace(deliverer.webhooks, db=db)  # type: ignore[arg-type]
    return db


def test_delivery_of_a_fan_out_with_unknown_outcome_is_sent(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")

    async def fan_out(deliverer: Deliverer) -> None:
        db = unlucky(deliverer)
        db.is_armed = True
        await FanOut(deliverer.webhooks, deliverer).step()

    with stepwise(hub) as steps:
        with pytest.raises(OutcomeUnknown):
            steps.call(fan_out)
        steps.run()
    assert receiver.kinds == ["repo create"]


def test_wake_up_that_a_unit_with_unknown_outcome_took_is_not_lost(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    create_webhook(ada, receiver.url, "user:ada")

    async def store(deliverer: Deliverer) -> None:
        db = unlucky(deliverer)
        await deliverer.look()
        db.is_armed = True
        await deliverer.store_some()

    async def fan_out(opened: Hub) -> None:
        await FanOut(opened.webhooks).step()

    with stepwise(hub) as steps:
        steps.start()
        create_repo(ada, "tiny")
        hub.call(fan_out)
        with pytest.raises(OutcomeUnknown):
            steps.call(store)
        steps.run()
    assert receiver.kinds == ["repo create"]


def test_results_are_stored_before_a_process_ends(hub: RunningHub, receiver: Receiver, ada: httpx.Client) -> None:
    """Even if the loop that stores has just taken them. Otherwise the next process would send them again."""
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")

    async def stop(deliverer: Deliverer) -> None:
        async with deliverer.exclusive:
            ending = asyncio.create_task(deliverer._store_rest())
            await asyncio.sleep(0)
            storing = asyncio.create_task(deliverer.store_some())
            await asyncio.sleep(0)
        await ending
        row = await deliverer.webhooks.db.one("SELECT state FROM deliveries")
        assert row is not None
        assert row["state"] == "delivered"
        await storing

    with stepwise(hub) as steps:
        steps.start()
        steps.wait_for_results(1)
        steps.call(stop)
    assert [log["state"] for log in ada.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()] == ["delivered"]


def test_process_that_was_taken_over_while_it_stops_does_not_spin(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")

    async def stop(deliverer: Deliverer) -> None:
        deliverer.dispatch.queue.read_again(webhook["id"])
        deliverer.stop.set()
        await deliverer._start_over()
        assert not await deliverer.store_some(), "the loop ends"
        await deliverer._store_rest()

    with stepwise(hub) as steps:
        steps.call(stop)


def test_heartbeats_continue_while_rows_are_read(hub: RunningHub) -> None:
    """However long it takes to find the webhooks that have deliveries."""

    async def beat(opened: Hub) -> None:
        db = Unlucky(opened.db, hangs=asyncio.Event())
        deliverer = Deliverer(replace(opened.webhooks, db=db), asyncio.Event())  # type: ignore[arg-type]
        await deliverer.ownership.start()
        for _ in range(2):
            async with asyncio.timeout(60):
                await deliverer.beat()
        assert deliverer.shards == set()
        assert db.hangs is not None
        assert deliverer.moving is not None
        db.hangs.set()
        await deliverer.moving
        assert len(deliverer.shards) == 256
        await deliverer.ownership.end()

    hub.call(beat)


def test_process_that_ends_while_another_reads_rows_is_replaced_before_the_next_heartbeat(hub: RunningHub) -> None:
    async def work(opened: Hub) -> None:
        slow = replace(opened.webhooks, pace=replace(opened.webhooks.pace, heartbeat_seconds=200))
        db = Unlucky(opened.db, hangs=asyncio.Event())
        ending = Ownership(opened.db, slow.pace)
        await ending.start()
        deliverer = Deliverer(replace(slow, db=db), asyncio.Event())  # type: ignore[arg-type]
        await deliverer.ownership.start()
        heartbeats = asyncio.create_task(deliverer._keep_ownership())
        async with asyncio.timeout(60):
            await _until(lambda: deliverer.moving is not None)
            assert len(deliverer.ownership.shards) == 128
            await ending.end()
            deliverer._on_signal(Signal.SHARDS)
            await _until(lambda: deliverer.ownership.processes == 1)
            assert db.hangs is not None
            db.hangs.set()
            await _until(lambda: len(deliverer.shards) == 256)
        heartbeats.cancel()
        await deliverer.ownership.end()

    hub.call(work)


async def _until(is_met: Callable[[], bool]) -> None:
    while not is_met():
        await asyncio.sleep(0.01)


def test_stale_check_does_not_lose_deliveries_of_a_webhook_that_was_enabled_since(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    path = f"/api/settings/webhooks/{webhook['id']}"

    async def fan_out(deliverer: Deliverer) -> None:
        """As another process does: what this one reads must be checked."""
        await FanOut(deliverer.webhooks).step()
        await deliverer.look()
        while await deliverer.store_some():
            pass

    async def late(deliverer: Deliverer, rows: dict[str, Any], items: list[Any]) -> None:
        deliverer.dispatch.apply_check(items, rows, 0.0)

    async def checked(deliverer: Deliverer) -> Any:
        items = deliverer.dispatch.queue.to_check(10, deliverer.webhooks.clock(), 1e9)
        return items, await windows_store.check(deliverer.webhooks.db, [item.id for item in items])

    with stepwise(hub) as steps:
        create_repo(ada, "tiny")
        steps.call(fan_out)
        hub.call(lambda opened: opened.db.write(lambda tx: tx.exec("UPDATE webhooks SET state = 'disabled'")))
        items, rows = steps.call(checked)
        assert len(rows) == 1
        ada.post(f"{path}/enable")
        create_repo(ada, "next")
        steps.call(fan_out)
        for _ in range(2):
            steps.call(lambda deliverer: deliverer.store_some())
        steps.call(lambda deliverer: late(deliverer, rows, items))
        steps.run()
    until(lambda: len(receiver.received) == 2)
