"""`hubgate doctor` on deliveries: reports that no process delivers."""

from pathlib import Path

from tests.bed.blocking import blocking
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, make_token, make_user
from tests.bed.repos import make_repo
from tests.bed.running import RunningHub, running
from tests.bed.watching import make_webhook, receiving, settle

from hubgate.server.clock import iso
from hubgate.server.doctor import START_ADVICE, examine


def said_by_doctor(hub: RunningHub) -> tuple[str, str]:
    (found,) = [one for one in blocking(examine(hub.settings, hub.clock)) if one.check == "webhooks"]
    return found.level, found.text


def test_doctor_reports_overdue_deliveries(engine: Engine, tmp_path: Path) -> None:
    content = ("ok", "no delivery is overdue")
    with (
        running(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as hub,
        receiving() as receiver,
        api(hub, make_token(hub, make_user(hub, "ada"))) as ada,
    ):
        make_webhook(ada, receiver.url, "user:ada")
        assert said_by_doctor(hub) == content
        hub.clock.advance(7)
        since = hub.clock()
        make_repo(ada, "tiny")
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
