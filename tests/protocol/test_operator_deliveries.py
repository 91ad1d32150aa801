"""Deliveries of the whole hub on the operator's overview: backlog, rate, oldest waiting and failing hosts."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import stepwise
from tests.bed.webhooks import create_webhook, run_receiver, settle

from hubgate.server.jobs.heartbeats import this_machine
from hubgate.server.resources import Hub
from hubgate.server.webhooks.shards import store as shards_store


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def test_overview_shows_backlog_rate_and_failing_hosts(hub: RunningHub) -> None:
    with (
        browser_of(hub, create_user(hub, "olga", operator=True)) as operator,
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
        run_receiver() as receiver,
    ):

        def overview() -> str:
            main = operator.get("/operator").text.partition("<h2>Deliveries</h2>")[2].partition("</main>")[0]
            return " ".join(unescape(re.sub(r"<[^>]+>", " ", main.replace("<wbr>", ""))).split())

        receiver.status = 500
        for _ in range(2):
            create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        hub.clock.advance(60)
        shown = overview()
        assert shown.startswith("No process delivers. Start hubgate deliver")
        assert "Waiting 0 Events to match with webhooks 1 Oldest due 2" in shown
        assert "Failing hosts" not in shown
        settle(hub)
        shown = overview()
        assert "Waiting 2 2 for a retry Events to match with webhooks 0 Oldest due Nothing is due" in shown
        assert f"Failing hosts Host Webhooks No success since {urlsplit(receiver.url).netloc} 2 " in shown
        hub.clock.advance(3600)
        receiver.status = 200
        with stepwise(hub) as process:
            process.run()
            process.call(lambda deliverer: deliverer.beat())
            shown = overview()
        assert "Attempts in the last minute 2 Processes that deliver 1" in shown
        assert shown.startswith("Waiting 0 Events")
        assert "Failing hosts" not in shown


def test_killed_processes_do_not_count_as_delivering(hub: RunningHub) -> None:
    """Their rows are left in the database: no other process is there to delete them."""

    async def leave_rows(opened: Hub) -> None:
        # Shorter than an operator waits, so that a heartbeat that does not change is seen in time.
        opened.heartbeats.dead_after_seconds = 0.5
        opened.senders_folder.mkdir()
        # Nobody has locked it.
        (opened.senders_folder / "here").touch()
        await opened.db.write(lambda tx: shards_store.add_sender(tx, "here", this_machine()))
        await opened.db.write(lambda tx: shards_store.add_sender(tx, "elsewhere", "another machine"))
        await opened.db.write(lambda tx: shards_store.beat(tx, "here", 7))

    with (
        browser_of(hub, create_user(hub, "olga", operator=True)) as operator,
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
    ):
        create_repo(ada, "tiny")
        hub.call(leave_rows)
        shown = operator.get("/operator").text
        assert "<dt>Attempts in the last minute</dt><dd>0</dd>\n<dt>Processes that deliver</dt><dd>1</dd>" in shown
        assert "No process delivers." not in shown
        until(lambda: "No process delivers." in operator.get("/operator").text)
