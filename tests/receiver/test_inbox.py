"""`ack="before"`: deliveries are stored before the response, and processed later at least once."""

import asyncio
import logging
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from tests.bed.processes import environment, until
from tests.bed.receiver_library import SECRET, post, run_script, serve_receiver

from hubgate.depth import delivery_depth
from hubgate.receiver import Request, WebhookPayload, WebhooksServer
from hubgate.receiver.inbox.store import RETENTION_SECONDS, Store, WorkerLock
from hubgate.receiver.inbox.worker import MAX_INTERRUPTIONS, POLL_SECONDS, RETRY_DELAYS
from hubgate.receiver.testing import Deliverer, signed_delivery


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "inbox.db"


@pytest.fixture
def app(file: Path) -> WebhooksServer:
    return WebhooksServer(webhook_secret=SECRET, ack="before", inbox=file)


def states(file: Path) -> dict[str, str]:
    with sqlite3.connect(file) as db:
        found = dict(db.execute("SELECT delivery_id, state FROM deliveries").fetchall())
    db.close()
    return found


def is_given_up(file: Path) -> bool:
    """What waits for its time has waited: half an hour is long in a test."""
    with sqlite3.connect(file) as db:
        db.execute("UPDATE deliveries SET due_at = 0 WHERE state = 'waiting'")
    db.close()
    return states(file) == {"one": "failed"}


def test_response_does_not_wait_for_the_handler(app: WebhooksServer, file: Path) -> None:
    go_on, runs = threading.Event(), []

    @app.add_webhook
    def slow(payload: WebhookPayload) -> str:
        assert go_on.wait(60)
        runs.append(payload.repo.name)
        return "told nobody"

    delivery = signed_delivery("repo.create", secret=SECRET, id="one")
    with serve_receiver(app) as client:
        first = post(client, "/webhooks/slow", delivery)
        assert (first.status_code, first.json()) == (202, {"status": "accepted"})
        until(lambda: states(file) == {"one": "running"})
        assert post(client, "/webhooks/slow", delivery).status_code == 202, "it is in good hands"
        go_on.set()
        until(lambda: states(file) == {"one": "done"})
        again = post(client, "/webhooks/slow", delivery)
        assert (again.status_code, again.json()) == (200, {"status": "already processed"})
    assert runs == ["ada/tiny"]


def test_handler_gets_the_same_arguments(app: WebhooksServer) -> None:
    seen: list[object] = []

    @app.add_webhook
    async def heard(payload: WebhookPayload, request: Request) -> None:
        headers = request.headers
        seen.append((payload.kind, request.delivery_id, request.attempt, delivery_depth.get(), request.url.path))
        seen.append({"x-webhook-secret", "webhook-signature", "authorization", "cookie"} & set(headers))

    with Deliverer(app) as deliver:
        delivery = deliver.signed_delivery("repo.delete", id="one", attempt=3, depth=2)
        delivery.headers.update(Authorization="Bearer x", Cookie="y")
        assert deliver(delivery).status == 202
        deliver.settle()
    assert seen == [("repo.delete", "one", 3, 2, "/webhooks/heard"), set()]


def test_deliveries_without_a_handler_are_not_stored(app: WebhooksServer, file: Path) -> None:
    called: list[str] = []
    app.on("repo")(lambda payload: called.append(payload.kind))
    with Deliverer(app) as deliver:
        assert deliver("repo.create").status == 202
        assert deliver("discussion.create").status == 200
        deliver.settle()
    assert called == ["repo.create"]
    assert list(states(file).values()) == ["done"]


def test_rejected_deliveries_are_not_stored(app: WebhooksServer, file: Path) -> None:
    @app.add_webhook
    def reads(payload: WebhookPayload) -> None: ...

    with Deliverer(app) as deliver:
        assert deliver("repo.create", secret="wrong").status == 403
        assert deliver.post("/webhooks/reads", {"X-Webhook-Secret": SECRET}, b"{").status == 422
        deliver.settle()
    assert states(file) == {}


def test_failed_delivery_is_retried_and_finally_fails(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[int] = []

    @app.add_webhook
    def breaks() -> None:
        runs.append(1)
        raise RuntimeError

    with Deliverer(app) as deliver:
        delivery = deliver.signed_delivery("repo.create", id="one")
        deliver(delivery)
        until(lambda: is_given_up(file))
        assert len(runs) == len(RETRY_DELAYS) + 1
        assert "will not be retried" in caplog.text
        assert deliver(delivery).status == 202, "sent again it gets another chance"
        until(lambda: len(runs) > len(RETRY_DELAYS) + 1)


def test_failed_delivery_waits_before_its_retry(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @app.add_webhook
    def breaks() -> None:
        raise RuntimeError

    with Deliverer(app) as deliver:
        deliver("repo.create", id="one")
        deliver.settle()
    assert states(file) == {"one": "waiting"}
    with sqlite3.connect(file) as db:
        (wait,) = db.execute("SELECT due_at - received_at FROM deliveries").fetchone()
    db.close()
    assert RETRY_DELAYS[0] - 1 < wait < RETRY_DELAYS[1] - 1


@pytest.mark.parametrize("value", [object(), float("nan"), Response(status_code=204)], ids=["object", "nan", "204"])
def test_return_value_is_ignored(app: WebhooksServer, file: Path, value: object) -> None:
    app.add_webhook("x")(lambda: value)
    with Deliverer(app) as deliver:
        deliver("repo.create", id="one")
        deliver.settle()
    assert states(file) == {"one": "done"}


def test_returned_error_response_is_a_failure(app: WebhooksServer, file: Path) -> None:
    app.add_webhook("x")(lambda: Response(status_code=409))
    with Deliverer(app) as deliver:
        deliver("repo.create", id="one")
        deliver.settle()
    assert states(file) == {"one": "waiting"}


@pytest.mark.parametrize(
    "error",
    [SystemExit(1), asyncio.CancelledError(), HTTPException(500, headers={"X-Name": "日本"})],
    ids=lambda error: type(error).__name__,
)
def test_no_exception_leaves_a_delivery_running(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    @app.add_webhook
    async def breaks() -> None:
        raise error

    with Deliverer(app) as deliver:
        deliver("repo.create", id="one")
        deliver.settle()
        assert states(file) == {"one": "waiting"}


def test_interrupted_delivery_runs_again(app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As a process that died leaves it."""
    store = Store(file)
    store.put("/webhooks/heard", "one", [(b"x-hubgate-depth", b"1")], b"{}", 0.0)
    store.claim(1, time.time())
    store.close()
    assert states(file) == {"one": "running"}
    ran: list[int | None] = []
    app.add_webhook("heard")(lambda: ran.append(delivery_depth.get()))
    with Deliverer(app) as deliver:
        deliver.settle()
    assert ran == [1]
    assert "interrupted" in caplog.text


def test_delivery_that_kills_the_process_finally_fails(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(file)
    store.put("/webhooks/heard", "one", [], b"{}", 0.0)
    for _ in range(MAX_INTERRUPTIONS):
        assert store.claim(1, time.time())
        store.recover()
    store.close()
    ran: list[int] = []
    app.add_webhook("heard")(lambda: ran.append(1))
    with Deliverer(app):
        until(lambda: states(file) == {"one": "failed"})
    assert ran == []


def test_interruptions_do_not_count_as_failures(app: WebhooksServer, file: Path) -> None:
    store = Store(file)
    store.put("/webhooks/breaks", "one", [], b"{}", 0.0)
    for _ in RETRY_DELAYS:
        assert store.claim(1, time.time())
        store.recover()
    store.close()

    @app.add_webhook
    def breaks() -> None:
        raise RuntimeError

    with Deliverer(app) as deliver:
        deliver.settle()
    assert states(file) == {"one": "waiting"}
    with sqlite3.connect(file) as db:
        (due_at,) = db.execute("SELECT due_at FROM deliveries").fetchone()
    db.close()
    assert due_at < time.time() + RETRY_DELAYS[0], "as after the first failure"


def test_delivery_interrupted_by_shutdowns_never_fails(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert app._intake.inbox is not None
    app._intake.inbox.stop_seconds = 0.05
    began, finishes = threading.Semaphore(0), threading.Event()

    @app.add_webhook
    async def long() -> None:
        began.release()
        if not finishes.is_set():
            await asyncio.Event().wait()

    with Deliverer(app) as deliver:
        deliver("repo.create", id="one")
        assert began.acquire(timeout=60)
    for _ in range(MAX_INTERRUPTIONS):
        with Deliverer(app):
            assert began.acquire(timeout=60)
    assert "1 deliveries were interrupted and will run again" in caplog.text
    finishes.set()
    with Deliverer(app) as deliver:
        deliver.settle()
    assert states(file) == {"one": "done"}


def test_inbox_of_an_earlier_version_is_usable(app: WebhooksServer, file: Path) -> None:
    store = Store(file)
    store.put("/webhooks/heard", "one", [], b"{}", 0.0)
    store.close()
    with sqlite3.connect(file) as db:
        db.execute("ALTER TABLE deliveries DROP COLUMN failures")
    db.close()
    app.add_webhook("heard")(lambda: None)
    with Deliverer(app) as deliver:
        deliver.settle()
    assert states(file) == {"one": "done"}


def test_delivery_for_a_removed_handler_is_logged(
    app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(file)
    store.put("/webhooks/gone", "one", [], b"{}", 0.0)
    store.close()
    app.add_webhook("here")(lambda: None)
    with Deliverer(app) as deliver:
        deliver.settle()
    assert states(file) == {"one": "waiting"}, "until the handler is back"
    assert "no longer registered" in caplog.text


def test_ids_are_retained_seven_days_without_content(file: Path) -> None:
    store = Store(file)
    store.put("/webhooks/x", "one", [(b"a", b"b")], b"private things", 0.0)
    (kept,) = store.claim(1, 1.0)
    assert (kept.headers, kept.body) == ([(b"a", b"b")], b"private things")
    store.mark_done(kept.number, 1.0)
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT headers, body FROM deliveries").fetchall() == [(None, None)]
    db.close()
    store.delete_expired(1.0 + RETENTION_SECONDS - 1)
    assert store.put("/webhooks/x", "one", [], b"{}", 2.0) == "done"
    store.delete_expired(1.0 + RETENTION_SECONDS + 1)
    assert store.put("/webhooks/x", "one", [], b"{}", 3.0) == "waiting"
    (kept,) = store.claim(1, 4.0)
    assert (kept.headers, kept.body) == ([], b"{}")
    store.close()


def test_only_one_process_works_on_the_inbox(file: Path) -> None:
    first, second = WorkerLock(file), WorkerLock(file)
    assert first.try_acquire()
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()
    second.close()
    assert first.try_acquire()
    first.close()


def test_inbox_is_readable_only_by_its_owner(app: WebhooksServer, file: Path) -> None:
    app.add_webhook("x")(lambda: None)
    with Deliverer(app) as deliver:
        deliver("repo.create")
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in file.parent.iterdir()}
    assert len(modes) > 2
    assert set(modes.values()) == {0o600}, modes


def test_unwritable_inbox_is_answered_503(app: WebhooksServer, file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The hub then keeps it, and the log has one line for as long as it lasts, not one a second."""
    ran: list[str] = []
    app.add_webhook("x")(lambda payload: ran.append(payload.repo.name))
    with Deliverer(app) as deliver:
        for name in ("ada/one", "ada/two"):
            deliver.settle()
            caplog.clear()
            _damage(file)
            for _ in range(3):
                answer = deliver("repo.create", name=name)
                assert (answer.status, answer.headers["retry-after"]) == (503, "10")
            until(lambda: "cannot be used; retrying" in caplog.text)
            # So long that it looked again, twice.
            noticed = time.monotonic()
            until(lambda since=noticed: time.monotonic() > since + 2.5 * POLL_SECONDS)
            Store(file).close()
            assert deliver("repo.create", name=name).status == 202
            until(lambda wanted=name: wanted in ran)
            told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
            assert sorted(told) == sorted(
                [
                    f"The inbox {file} cannot be used; retrying: no such table: deliveries",
                    "The inbox cannot be written to; deliveries are answered with 503: no such table: deliveries",
                ]
            )
            assert "Traceback" not in caplog.text


def _damage(file: Path) -> None:
    with sqlite3.connect(file, timeout=60) as db:
        db.execute("DROP TABLE deliveries")
    db.close()


MISSING = """
from hubgate.receiver import WebhooksServer
app = WebhooksServer(ack="before", inbox="no/such/inbox.db")
app.add_webhook("x")(lambda: None)
"""


UVICORN = ["-m", "uvicorn", "--port", "0", "app:app"]


@pytest.mark.parametrize(
    ("how", "shown"), [(["app.py"], ""), (UVICORN, ""), (UVICORN, ", ui=Starlette()")], ids=["launch", "uvicorn", "ui"]
)
def test_receiver_does_not_start_without_an_inbox_file(tmp_path: Path, how: list[str], shown: str) -> None:
    program = MISSING.replace(", inbox=", f"{shown}, inbox=") + ("app.launch(port=0)" if how == ["app.py"] else "")
    (tmp_path / "app.py").write_text(f"from starlette.applications import Starlette\n{program}")
    variables = environment(HUBGATE_NO_EXPERIMENTAL_WARNING="1", WEBHOOK_SECRET=SECRET)
    command = [sys.executable, *how]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "Receiving webhooks" not in done.stdout
    cure = f"Create its folder: mkdir -p {tmp_path}/no/such"
    assert [cure in line for line in done.stderr.splitlines()].count(True) == 1
    assert ("Traceback" in done.stderr) is (how == ["app.py"]), "of launch() it is an error like any other"


def test_file_that_is_not_an_inbox_is_rejected(file: Path) -> None:
    file.write_text("notes of mine, long enough to be looked at\n" * 100)
    app = WebhooksServer(webhook_secret=SECRET, ack="before", inbox=file)
    with pytest.raises(OSError, match=r"cannot be used: file is not a database\. Choose another file with inbox="):
        app.launch(port=0, prevent_thread_lock=True)
    with pytest.raises(RuntimeError, match="file is not a database"), Deliverer(app):
        raise AssertionError


LOCKED = {"WEBHOOK_SECRET": SECRET}
TWO = """
import sys
from hubgate.receiver import WebhooksServer
app = WebhooksServer(ack="before", inbox="inbox.db")
@app.add_webhook
def heard(payload):
    with open("ran.txt", "a") as file:
        file.write(sys.argv[1] + " " + payload.repo.name + "\\n")
app.launch()
"""


def test_another_process_takes_over_the_inbox(tmp_path: Path) -> None:
    """One process runs a delivery, no matter which received it; if that process dies, the other continues."""
    ran = tmp_path / "ran.txt"
    ran.touch()
    with (
        run_script(tmp_path / "a.py", TWO, "a", **LOCKED) as first,
        run_script(tmp_path / "b.py", TWO, "b", **LOCKED) as second,
    ):
        httpx.post(first.addresses[0], **_as_sent("ada/one"))
        until(lambda: ran.read_text() == "a ada/one\n")
        assert httpx.post(second.addresses[0], **_as_sent("ada/two")).status_code == 202
        until(lambda: ran.read_text() == "a ada/one\na ada/two\n")
        # Killed before it records that, it would leave the delivery to run again.
        until(lambda: set(states(tmp_path / "inbox.db").values()) == {"done"})
        first.kill()
        assert httpx.post(second.addresses[0], **_as_sent("ada/three")).status_code == 202
        until(lambda: ran.read_text().endswith("b ada/three\n"))


def test_process_without_the_lock_is_idle(tmp_path: Path) -> None:
    """Also after it has received a delivery, which the other process runs."""
    ran = tmp_path / "ran.txt"
    ran.touch()
    with (
        run_script(tmp_path / "a.py", TWO, "a", **LOCKED),
        run_script(tmp_path / "b.py", TWO, "b", **LOCKED) as second,
    ):
        assert httpx.post(second.addresses[0], **_as_sent("ada/one")).status_code == 202
        until(lambda: ran.read_text() == "a ada/one\n")
        before, since = _cpu_seconds(second.process.pid), time.monotonic()
        until(lambda: time.monotonic() > since + 3 * POLL_SECONDS)
        assert _cpu_seconds(second.process.pid) - before < 0.5


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process so far, in user mode and in the kernel: proc(5)."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_waits_for_running_handlers(tmp_path: Path) -> None:
    text = TWO.replace("    with open", "    import time; open('began', 'w').close(); time.sleep(0.5)\n    with open")
    with run_script(tmp_path / "a.py", text, "a", **LOCKED) as running:
        httpx.post(running.addresses[0], **_as_sent("ada/one"))
        until((tmp_path / "began").exists)
        assert running.stop() == 0
    assert (tmp_path / "ran.txt").read_text() == "a ada/one\n"
    assert list(states(tmp_path / "inbox.db").values()) == ["done"]


def _as_sent(name: str) -> dict[str, object]:
    delivery = signed_delivery("repo.create", name=name, secret=SECRET)
    return {"headers": delivery.headers, "content": delivery.body}
