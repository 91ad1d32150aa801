"""`hubgate doctor` on deliveries: reports that no process delivers."""

from pathlib import Path

from tests.bed.blocking import run_blocking
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import create_webhook, run_receiver, settle

from hubgate.server.clock import iso
from hubgate.server.doctor import START_ADVICE, examine


def said_by_doctor(hub: RunningHub) -> tuple[str, str]:
    (found,) = [one for one in run_blocking(examine(hub.settings, hub.clock)) if one.check == "webhooks"]
    return found.level, found.text


def test_doctor_reports_overdue_deliveries(engine: Engine, tmp_path: Path) -> None:
    content = ("ok", "no delivery is overdue")
    with (
        run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as hub,
        run_receiver() as receiver,
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
    ):
        create_webhook(ada, receiver.url, "user:ada")
        assert said_by_doctor(hub) == content
        hub.clock.advance(7)
        since = hub.clock()
        create_repo(ada, "tiny")
        assert said_by_doctor(hub) == content
        hub.clock.advance(61)
        warned = ("warn", f"deliveries have been overdue since {iso(since)}. {START_ADVICE}")
        assert said_by_doctor(hub) == warned
        # One that fails waits for its next try, and for nobody.
        receiver.status = 500
        settle(hub)
        assert said_by_doctor(hub) == content
        hub.clock.advance(3600)
        assert said_by_doctor(hub)[0] == "warn"
