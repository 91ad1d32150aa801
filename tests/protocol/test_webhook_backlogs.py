"""Webhooks with very many deliveries: their owners' requests are still answered."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import create_webhook, run_receiver, settle

from hubgate.server.accounts import own_account
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.retention.deletion import Retention

COUNT = 10_000
PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def copy_delivery(hub: RunningHub, count: int, state: str = "pending", only: str = "") -> None:
    """Copies of the only delivery, or the only one of `only`, behind it in its lane."""
    same = "webhook_id, repo_id, repo_type, repo_name, scope, action, depth, is_test, replay_of, reason, due_at"

    async def unit(tx: Tx) -> None:
        await tx.exec(
            f"""
            WITH RECURSIVE numbers AS (
                SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < CAST(:count AS bigint)
            )
            INSERT INTO deliveries (id, event_id, seq, repo_seq, state, attempts, created_at, body, {same})
            SELECT d.id || n, d.event_id || n, d.seq + n, d.repo_seq + n, CAST(:state AS text), 0, d.created_at,
                (SELECT e.body FROM events e WHERE e.id = d.event_id), {same}
            FROM deliveries d, numbers WHERE CAST(:only AS text) IN ('', d.webhook_id)
            """,
            {"count": count, "state": state, "only": only},
        )
        sql = "UPDATE webhooks SET last_seq = last_seq + CAST(:count AS bigint) WHERE CAST(:only AS text) IN ('', id)"
        await tx.exec(sql, {"count": count, "only": only})

    hub.call(lambda opened: opened.db.write_long(unit))


def test_lane_of_thousands_is_listed_quickly(hub: RunningHub) -> None:
    """Which deliveries are parked is determined without comparing each with each."""
    user = create_user(hub, "ada")
    with api(hub, create_token(hub, user)) as ada, browser_of(hub, user) as browser:
        with run_receiver() as closed:
            webhook = create_webhook(ada, closed.url, "user:ada", ordered=True)
        create_repo(ada, "tiny")
        settle(hub)
        copy_delivery(hub, COUNT)
        began = time.monotonic()
        for waits, parked in (("parked", COUNT), ("pending", 0)):
            at = f"{PATH}/{webhook['id']}/logs"
            states = ("parked", waits, "retrying")
            found = [len(ada.get(at, params={"state": state, "limit": 3}).json()) for state in states]
            assert found == [min(parked, 3), 3, 1]
            page = browser.get(f"/settings/webhooks/{webhook['id']}?state=parked")
            assert f"{parked:,} deliveries" in page.text
            assert ada.get(at, params={"limit": 1}).json()[0]["state"] == waits
            hub.clock.advance(301)
        assert time.monotonic() - began < 60


def test_many_failed_deliveries_do_not_slow_down_reading(hub: RunningHub) -> None:
    """Due deliveries are found without comparing each with all failed ones, which would block the only writer."""
    with run_receiver() as receiver, api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        hub.call(_fanned)
        copy_delivery(hub, 3 * COUNT)

        async def fail(tx: Tx) -> None:
            sql = "UPDATE deliveries SET attempts = 1, tried_at = 1, state = 'retrying', due_at = :later"
            await tx.exec(f"{sql} WHERE repo_seq < {3 * COUNT - 300}", {"later": hub.clock() + 10**11})
            await tx.exec("UPDATE deliveries SET body = :body", {"body": b"{}"})

        hub.call(lambda opened: opened.db.write_long(fail))
        began = time.monotonic()
        receiver.hold()
        with stepwise(hub) as steps:
            (first,) = steps.start()
            assert first.repo_seq == 3 * COUNT - 300
            assert time.monotonic() - began < 60


@pytest.mark.parametrize("whole_account", [False, True], ids=["a webhook", "its user"])
def test_deletion_does_not_wait_for_the_backlog(hub: RunningHub, whole_account: bool) -> None:
    """The webhook is gone for its owner and sends nothing at once; its rows are deleted in steps."""
    user = create_user(hub, "ada")
    counted = """
        SELECT (SELECT count(*) FROM webhooks), (SELECT count(*) FROM deliveries),
            (SELECT count(*) FROM deliveries WHERE attempts > 0)
    """

    def left() -> tuple[int, ...]:
        row = hub.call(lambda opened: opened.db.one(counted))
        assert row is not None
        return tuple(row)

    async def drop(opened: Hub) -> None:
        while await Retention(opened.webhooks, 30).step():
            pass

    with run_receiver() as receiver, api(hub, create_token(hub, user)) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        settle(hub)
        copy_delivery(hub, 1500, only=webhook["id"])
        create_repo(ada, "next")
        receiver.hold()
        with stepwise(hub) as steps:
            count = len(steps.start())
            assert webhook["id"] in {one.webhook_id for one in steps.in_flight}
            if whole_account:
                hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))
            else:
                assert ada.delete(f"{PATH}/{webhook['id']}").status_code == 200
                assert ada.get(f"{PATH}/{webhook['id']}").status_code == 404
                assert len(ada.get(PATH).json()) == 1
            webhooks, deliveries, tried = left()
            assert deliveries > 900, "not during the request"
            steps.wait_until_checks_are_stale()
            receiver.release(count)
            steps.wait_for_results(count)
            sent = len(receiver.received)
            steps.store()
            assert left()[:2] == (webhooks, deliveries)
            of_others = 0 if whole_account else 1
            assert left()[2] == tried + of_others, "nobody stores the outcome"
        receiver.stop_holding()
        settle(hub)
        assert all(one.headers["x-hubgate-webhook"] != webhook["id"] for one in receiver.received[sent:])
        hub.call(drop)
        assert left()[:2] == ((0, 0) if whole_account else (1, 2))


async def _fanned(opened: Hub) -> None:
    while await FanOut(opened.webhooks).step():
        pass
