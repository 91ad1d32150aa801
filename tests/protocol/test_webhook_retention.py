"""Deliveries are retained for as long as the operator configures, counted from their end."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

from hubgate.server.resources import Hub
from hubgate.server.webhooks.retention.deletion import Retention

DAY_SECONDS = 24 * 3600


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    url = engine.fresh_url()
    with run_hub(settings_for(url, tmp_path, egress_allow="127.0.0.0/8", delivery_retention_days="1")) as started:
        yield started


def sweep(hub: RunningHub) -> None:
    async def work(opened: Hub) -> None:
        while await Retention(opened.webhooks, opened.settings.delivery_retention_days).step():
            pass

    hub.call(work)


def test_failed_delivery_is_retained_from_its_last_attempt(hub: RunningHub, receiver: Receiver) -> None:
    """Attempts continue for longer than a day; an owner who is notified of the end must be able to replay."""
    user = create_user(hub, "ada")
    receiver.status = 500
    with api(hub, create_token(hub, user)) as ada, browser_of(hub, user) as browser:
        webhook = create_webhook(ada, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        settle(hub)
        hub.clock.advance(DAY_SECONDS + 60)
        receiver.status = 410
        settle(hub)
        logs, page = f"/api/settings/webhooks/{webhook['id']}/logs", f"/settings/webhooks/{webhook['id']}"
        (failed,) = ada.get(logs).json()
        sweep(hub)
        full = ada.get(f"{logs}/{failed['id']}").json()
        assert (full["state"], len(full["tries"])) == ("failed", 2)
        assert full["payload"]["repo"]["name"] == "ada/tiny"
        receiver.status, receiver.received[:] = 200, []
        assert submit(browser, page, f"{page}/enable").status_code == 303
        settle(hub)
        assert receiver.kinds == ["repo create"]
        hub.clock.advance(DAY_SECONDS - 1)
        sweep(hub)
        assert len(ada.get(logs).json()) == 1
        hub.clock.advance(2)
        sweep(hub)
        assert ada.get(logs).json() == []
        left = hub.call(lambda opened: opened.db.one("SELECT (SELECT count(*) FROM events), count(*) FROM attempts"))
        assert tuple(left or ()) == (0, 0), "nobody needs them any more"
