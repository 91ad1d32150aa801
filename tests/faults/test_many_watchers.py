"""Large numbers: a hundred thousand watchers of one event, a thousand receivers that hang."""

import signal
import time

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import opened_database, settings_for
from tests.bed.memory import watch_memory
from tests.bed.plugin import SMALL_FAULT_COUNT
from tests.bed.processes import until
from tests.faults.conftest import Store
from tests.faults.scene import Scene, make_scene
from tests.faults.watchers import Watchers, watching

from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import open_hub
from hubgate.server.storage.schema.webhooks import webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
SMALL, FULL = 20_000, 100_000


def add_watchers(scene: Scene, count: int) -> None:
    """Copies of a pull webhook: nothing is sent."""

    async def work() -> None:
        hub = await open_hub(settings_for(scene.store.url, scene.store.folder / "data"))
        try:
            row = await hub.db.one("SELECT user_id FROM webhooks LIMIT 1")
            assert row is not None
            wanted = WebhookRequest(pull=True, watched=[("user", "ada")])
            kept = await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=row["user_id"]), wanted, SYSTEM)
        finally:
            await hub.close()
        async with opened_database(scene.store.url) as db:
            names = [column.name for column in webhooks.columns if column.name != "id"]
            webhook = f"""
                INSERT INTO webhooks (id, {", ".join(names)}) SELECT :new, {", ".join(names)} FROM webhooks
                WHERE id = :id
            """
            watch = """
                INSERT INTO watches (webhook_id, type, key, name, target_id, position)
                SELECT :new, type, key, name, target_id, position FROM watches WHERE webhook_id = :id
            """
            rows = [{"id": kept.webhook.id, "new": f"{number:024x}"} for number in range(count - 1)]
            for first in range(0, len(rows), 2000):
                for sql in (webhook, watch):
                    part = rows[first : first + 2000]
                    await db.write_long(lambda tx, sql=sql, part=part: tx.exec_many(sql, part))  # type: ignore[misc]

    run_blocking(work())


def test_event_with_a_hundred_thousand_watchers_is_fanned_out_once(
    store: Store, watchers: Watchers, fault_count: int
) -> None:
    """In bounded memory, and although its process is killed in the middle: each watcher gets it once."""
    count = SMALL if fault_count <= SMALL_FAULT_COUNT else FULL
    scene = make_scene(store, watchers)
    add_watchers(scene, count)
    with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada:
        scene.changed(ada, "ada/one")
    told = "SELECT count(*), count(DISTINCT webhook_id) FROM deliveries WHERE state = 'stored'"
    with scene.delivering(TEST_FAILPOINTS="fan-out-after-chunk:7") as process:
        assert process.wait(60) == -signal.SIGKILL
    ((some, _),) = scene.rows(told)
    assert 0 < int(str(some)) < count
    with scene.delivering() as process, watch_memory(process.pid) as peaks:
        until(scene.is_settled, 300)
    assert scene.rows(told) == [(count, count)]
    print(peaks)
    assert peaks.highest < 110 * MIB, peaks


def test_a_thousand_hanging_receivers_delay_nobody(store: Store, watchers: Watchers) -> None:
    """Deliveries to healthy ones are received before the first hanging one reaches its deadline (attack W37)."""
    scene = make_scene(store, watchers)
    with watching("0.0.0.0") as hanging:
        hanging.answer = lambda _: None
        add_hanging(scene, hanging, 1000)
        with scene.hub("--deliver", "off") as hub, scene.client(hub) as ada, scene.delivering(TEST_PACE="") as process:
            scene.changed(ada, "ada/one")
            until(lambda: hanging.waiting >= 900, 60)
            began = time.monotonic()
            scene.changed(ada, "ada/one", "ada/two", times=5)
            until(lambda: len(watchers.arrivals) >= 11 + 11 + 5, 14)
            assert hanging.arrivals == [], "the first of them reached its deadline"
            took = max(arrival.began - began for arrival in watchers.arrivals)
            print(f"{hanging.waiting} hang, the last healthy one arrived after {took:.2f} s")
            process.kill()


def add_hanging(scene: Scene, hanging: Watchers, count: int) -> None:
    """At fifty addresses: one address has room for 64."""

    async def work() -> None:
        settings = settings_for(
            scene.store.url, scene.store.folder / "data", webhooks_per_owner=str(count + 50), egress_allow="127.0.0.0/8"
        )
        hub = await open_hub(settings)
        try:
            row = await hub.db.one("SELECT user_id FROM webhooks LIMIT 1")
            assert row is not None
            port = hanging.url("").rpartition(":")[2]
            for number in range(count):
                url = f"http://127.0.2.{number % 50 + 1}:{port}{number}"
                wanted = WebhookRequest(url=url, watched=[("user", "ada")])
                await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=row["user_id"]), wanted, SYSTEM)
        finally:
            await hub.close()

    run_blocking(work())
