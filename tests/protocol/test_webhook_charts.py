"""Charts of a webhook: the hourly roll-up in the background, and the pages that show it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

from hubgate.server.resources import Hub
from hubgate.server.webhooks.activity.rollup import RollUp

HOUR = 3600
SUMS = "total, delivered, failed, retrying, waiting, skipped"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def roll_up(hub: RunningHub) -> list[tuple[int, ...]]:
    """Run a round of the background job; the sums of all hours, oldest first."""

    async def work(opened: Hub) -> list[tuple[int, ...]]:
        job = RollUp(opened.webhooks)
        while await job.step():
            pass
        sql = f"SELECT {SUMS} FROM delivery_hours ORDER BY webhook_id, hour"
        return [tuple(row) for row in await opened.db.read_long(lambda tx: tx.all(sql))]

    return hub.call(work)


def due_rows(hub: RunningHub) -> int:
    row = hub.call(lambda opened: opened.db.one("SELECT count(*) FROM delivery_hours WHERE next_at IS NOT NULL"))
    assert row is not None
    return int(row[0])


def push(ada: httpx.Client, count: int) -> None:
    """Cause events in an existing repo."""
    for _ in range(count):
        private = ada.get("/api/models/ada/tiny").json()["private"]
        assert ada.put("/api/models/ada/tiny/settings", json={"private": not private}).status_code == 200


def test_roll_up_follows_deliveries_until_they_end(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    push(ada, 2)
    assert roll_up(hub) == []
    settle(hub)
    assert roll_up(hub) == [(3, 3, 0, 0, 0, 0)]
    hub.clock.advance(HOUR)
    receiver.status = 500
    push(ada, 2)
    settle(hub)
    ada.post(f"/api/settings/webhooks/{webhook['id']}/disable")
    push(ada, 1)
    settle(hub)
    assert roll_up(hub) == [(3, 3, 0, 0, 0, 0), (3, 0, 0, 0, 0, 3)]
    ada.post(f"/api/settings/webhooks/{webhook['id']}/enable")
    push(ada, 1)
    settle(hub)
    hub.clock.advance(120)
    assert roll_up(hub)[1] == (4, 0, 0, 1, 0, 3), "computed again with the new one"
    receiver.status = 200
    hub.clock.advance(HOUR)
    settle(hub)
    assert roll_up(hub)[1] == (4, 1, 0, 0, 0, 3), "the retry succeeded an hour later"
    hub.clock.advance(3 * HOUR)
    roll_up(hub)
    assert due_rows(hub) == 0, "final sums are not computed again"


def test_resumed_deliveries_are_computed_again(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    """Enabling a suspended webhook sends deliveries of hours whose sums were final."""
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    receiver.status = 410
    settle(hub)
    hub.clock.advance(5 * HOUR)
    assert roll_up(hub) == [(1, 0, 1, 0, 0, 0)]
    assert due_rows(hub) == 0
    receiver.status = 200
    page = f"/settings/webhooks/{webhook['id']}"
    assert submit(browser, page, f"{page}/enable").status_code == 303
    settle(hub)
    assert roll_up(hub) == [(1, 1, 0, 0, 0, 0)]


def test_roll_up_copes_with_clocks_and_deleted_deliveries(
    hub: RunningHub, ada: httpx.Client, receiver: Receiver
) -> None:
    """A clock that is set back, and deliveries that retention has deleted."""
    create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    hub.clock.advance(HOUR)
    push(ada, 2)
    settle(hub)
    hub.clock.advance(-HOUR)
    push(ada, 3)
    settle(hub)
    roll_up(hub)
    hub.clock.advance(HOUR)
    assert [row[0] for row in roll_up(hub)] == [4, 2]
    hub.clock.advance(40 * 24 * HOUR)

    async def delete(opened: Hub) -> None:
        await opened.db.write_long(lambda tx: tx.exec("DELETE FROM deliveries"))

    hub.call(delete)
    push(ada, 1)
    settle(hub)
    assert roll_up(hub) == [(1, 1, 0, 0, 0, 0)], "hours of last month are deleted"


def test_roll_up_ends_with_its_webhook(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    assert len(roll_up(hub)) == 1
    assert ada.delete(f"/api/settings/webhooks/{webhook['id']}").status_code == 200
    assert roll_up(hub) == []
