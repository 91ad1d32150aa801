"""`hubgate doctor` on deliveries: reports that no process delivers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from tests.bed.blocking import run_blocking
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.stepwise_delivery import Steps, stepwise
from tests.bed.webhooks import create_webhook, run_receiver, settle

from hubgate.server.clock import iso
from hubgate.server.doctor import NO_PROCESS, OVERLOADED, examine


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
        waiting = f"0 deliveries and 1 event wait, the oldest since {iso(since)}"
        assert said_by_doctor(hub) == ("warn", f"no process delivers. {waiting}. {NO_PROCESS}")
        # One that fails waits for its next try, and for nobody.
        receiver.status = 500
        settle(hub)
        assert said_by_doctor(hub) == content
        hub.clock.advance(3600)
        level, text = said_by_doctor(hub)
        assert (level, text.partition(",")[0]) == ("warn", "no process delivers. 1 delivery and 0 events wait")


def test_doctor_distinguishes_overload_from_missing_processes(engine: Engine, tmp_path: Path) -> None:
    """A process that was killed leaves its row behind; one that runs changes its heartbeat."""
    with (
        run_hub(settings_for(engine.fresh_url(), tmp_path)) as hub,
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
    ):
        create_webhook(ada, "https://ci.example/", "user:ada")
        create_repo(ada, "tiny")
        hub.clock.advance(61)
        with stepwise(hub) as process:
            assert said_by_doctor(hub)[1].startswith("no process delivers. ")
            with beating(process):
                level, text = said_by_doctor(hub)
        assert (level, text.endswith(OVERLOADED)) == ("warn", True)


@contextmanager
def beating(process: Steps) -> Iterator[None]:
    """Heartbeats in a thread, as the process would send them."""
    stop = Event()

    def work() -> None:
        while not stop.wait(0.1):
            process.call(lambda deliverer: deliverer.beat())

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)
