"""`ack="before"`: what waits in the inbox when a process is killed or the clock is set back."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.bed.processes import environment
from tests.bed.receiver_library import SECRET
from tests.receiver.test_inbox import states

from hubgate.receiver import WebhooksServer
from hubgate.receiver.inbox.store import Store
from hubgate.receiver.inbox.worker import MAX_INTERRUPTIONS
from hubgate.receiver.testing import Deliverer

DEADLY = """
import asyncio, os
from hubgate.receiver import Request, WebhooksServer
from hubgate.receiver.testing import Deliverer

app = WebhooksServer(webhook_secret="x", ack="before", inbox="inbox.db")

@app.add_webhook
async def heard(request: Request) -> None:
    if request.delivery_id == "deadly":
        os._exit(9)
    await asyncio.sleep(0)

with Deliverer(app) as deliver:
    deliver.settle()
"""


def test_delivery_that_kills_the_process_does_not_make_others_fail(tmp_path: Path) -> None:
    file = tmp_path / "inbox.db"
    store = Store(file)
    for delivery_id in ("one", "two", "deadly", "three"):
        store.put("/webhooks/heard", delivery_id, [(b"webhook-id", delivery_id.encode())], b"{}", 0.0)
    store.close()
    command, variables = [sys.executable, "-c", DEADLY], environment(HUBGATE_NO_EXPERIMENTAL_WARNING="1")
    ends = [
        subprocess.run(command, cwd=tmp_path, env=variables, check=False).returncode
        for _ in range(MAX_INTERRUPTIONS + 1)
    ]
    assert ends == [9] * MAX_INTERRUPTIONS + [0]
    assert states(file) == {"one": "done", "two": "done", "deadly": "failed", "three": "done"}


def test_delivery_stored_before_the_clock_was_set_back_runs(tmp_path: Path) -> None:
    file, ran = tmp_path / "inbox.db", threading.Event()
    store = Store(file)
    store.put("/webhooks/heard", "one", [], b"{}", time.time() + 24 * 3600)
    store.close()
    app = WebhooksServer(webhook_secret=SECRET, ack="before", inbox=file)
    app.add_webhook("heard")(ran.set)
    with Deliverer(app):
        assert ran.wait(60)
