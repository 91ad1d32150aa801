"""Webhooks with very much behind them: what their owners ask is still answered."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, make_token, make_user
from tests.bed.repos import make_repo
from tests.bed.running import RunningHub, running
from tests.bed.watching import make_webhook, receiving, settle

from hubgate.server.storage.database import Tx

COUNT = 10_000
PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with running(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def copy_delivery(hub: RunningHub, count: int, state: str = "pending") -> None:
    """So many more of the one there is, behind it in its lane."""
    same = "webhook_id, repo_id, repo_type, repo_name, scope, action, depth, is_test, replay_of, reason, due_at"

    async def unit(tx: Tx) -> None:
        await tx.exec(
            f"""
            WITH RECURSIVE numbers AS (
                SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < CAST(:count AS bigint)
            )
            INSERT INTO deliveries (id, event_id, seq, repo_seq, state, attempts, created_at, {same})
            SELECT d.id || n, d.event_id || n, d.seq + n, d.repo_seq + n, CAST(:state AS text), 0, d.created_at, {same}
            FROM deliveries d, numbers
            """,
            {"count": count, "state": state},
        )
        await tx.exec("UPDATE webhooks SET last_seq = last_seq + CAST(:count AS bigint)", {"count": count})

    hub.call(lambda opened: opened.db.write_long(unit))


def test_a_lane_of_thousands(hub: RunningHub) -> None:
    """Which of them are parked, while one holds it and after, is not found out by comparing each with each."""
    user = make_user(hub, "ada")
    with api(hub, make_token(hub, user)) as ada, browser_of(hub, user) as browser:
        with receiving() as closed:
            webhook = make_webhook(ada, closed.url, "user:ada", ordered=True)
        make_repo(ada, "tiny")
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
        assert time.monotonic() - began < 10
