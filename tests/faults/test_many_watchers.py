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
from tests.faults.scenario import Scenario, create_scenario, pace
from tests.faults.watchers import Watchers, run_watchers

from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import open_hub
from hubgate.server.storage.schema.webhooks import webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
SMALL, FULL = 20_000, 100_000


def add_watchers(scenario: Scenario, count: int) -> None:
    """Add copies of a pull webhook, to which nothing is sent."""

    async def work() -> None:
        hub = await open_hub(settings_for(scenario.store.url, scenario.store.folder / "data"))
        try:
            row = await hub.db.one("SELECT user_id FROM webhooks LIMIT 1")
            assert row is not None
            request = WebhookRequest(pull=True, watched=[("user", "ada")])
            stored = await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=row["user_id"]), request, SYSTEM)
        finally:
            await hub.close()
        async with opened_database(scenario.store.url) as db:
            names = [column.name for column in webhooks.columns if column.name != "id"]
            webhook = f"""
                INSERT INTO webhooks (id, {", ".join(names)}) SELECT :new, {", ".join(names)} FROM webhooks
                WHERE id = :id
            """
            watch = """
                INSERT INTO watches (webhook_id, type, key, name, target_id, position)
                SELECT :new, type, key, name, target_id, position FROM watches WHERE webhook_id = :id
            """
            rows = [{"id": stored.webhook.id, "new": f"{number:024x}"} for number in range(count - 1)]
            for first in range(0, len(rows), 2000):
                for sql in (webhook, watch):
                    part = rows[first : first + 2000]
                    await db.write_long(lambda tx, sql=sql, part=part: tx.exec_many(sql, part))  # type: ignore[misc]

    run_blocking(work())


def test_event_with_a_hundred_thousand_watchers_is_fanned_out_once(
    store: Store, watchers: Watchers, fault_count: int
) -> None:
    """The process is killed during the fan-out and uses bounded memory; each watcher still gets the event once."""
    count = SMALL if fault_count <= SMALL_FAULT_COUNT else FULL
    scenario = create_scenario(store, watchers)
    add_watchers(scenario, count)
    with scenario.hub("--deliver", "off") as hub, scenario.client(hub) as ada:
        scenario.change_all(ada, "ada/one")
    stored = "SELECT count(*), count(DISTINCT webhook_id) FROM deliveries WHERE state = 'stored'"
    with scenario.delivering(TEST_FAILPOINTS="fan-out-after-chunk:7") as process:
        assert process.wait(300) == -signal.SIGKILL
    ((before, _),) = scenario.rows(stored)
    assert 0 < int(str(before)) < count
    with scenario.delivering() as process, watch_memory(process.pid) as peaks:
        until(scenario.is_settled, 300)
    assert scenario.rows(stored) == [(count, count)]
    print(peaks)
    assert peaks.highest < 110 * MIB, peaks


def test_a_thousand_hanging_receivers_do_not_delay_others(store: Store, watchers: Watchers) -> None:
    """Healthy receivers get their deliveries before the first hanging one reaches its deadline (attack W37)."""
    # Later than by default: on a busy machine it takes a while until all of them hang.
    late = pace(deadline=300)
    scenario = create_scenario(store, watchers)
    with run_watchers("0.0.0.0") as hanging:
        hanging.answer = lambda _: None
        add_hanging(scenario, hanging, 1000)
        with (
            scenario.hub("--deliver", "off") as hub,
            scenario.client(hub) as ada,
            scenario.delivering(**late) as process,
        ):
            scenario.change_all(ada, "ada/one")
            until(lambda: hanging.waiting >= 900, 150)
            began = time.monotonic()
            scenario.change_all(ada, "ada/one", "ada/two", times=5)
            until(lambda: len(watchers.received) >= 11 + 11 + 5, 250)
            assert hanging.received == [], "a hanging receiver has reached its deadline"
            took = max(request.began - began for request in watchers.received)
            print(f"{hanging.waiting} hang; the last healthy receiver got its delivery after {took:.2f} s")
            process.kill()


def add_hanging(scenario: Scenario, hanging: Watchers, count: int) -> None:
    """Add webhooks of hanging receivers at fifty addresses, because the hub sends at most 64 requests to an address."""

    async def work() -> None:
        settings = settings_for(
            scenario.store.url,
            scenario.store.folder / "data",
            webhooks_per_owner=str(count + 50),
            egress_allow="127.0.0.0/8",
        )
        hub = await open_hub(settings)
        try:
            row = await hub.db.one("SELECT user_id FROM webhooks LIMIT 1")
            assert row is not None
            port = hanging.url("").rpartition(":")[2]
            for number in range(count):
                url = f"http://127.0.2.{number % 50 + 1}:{port}{number}"
                request = WebhookRequest(url=url, watched=[("user", "ada")])
                await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=row["user_id"]), request, SYSTEM)
        finally:
            await hub.close()

    run_blocking(work())
