"""Receivers as their authors write them: `examples/space`, and one that uses an existing library."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

from tests.bed.clients import ENVIRONMENTS, Client
from tests.bed.engines import SqliteEngine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import ROOT, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_commit, create_repo
from tests.bed.spaces import run_spaces_hub
from tests.bed.webhooks import create_webhook, logs, settle
from tests.spaces.bed import LIMITS, START_SECONDS, spaces_bed
from tests.spaces.life import NAME, SPACE, log_lines, running_spaces, until_stage

from hubgate.receiver.testing import signed_delivery
from hubgate.server.clock import system_clock
from hubgate.server.egress.connection import Connection
from hubgate.server.spaces.bubblewrap.installed import Installed
from hubgate.server.spaces.logs_store import RUN
from hubgate.server.spaces.runner import MIB, Environment

EXISTING = """
import os
import gradio
from huggingface_hub import WebhookPayload, WebhooksServer

app = WebhooksServer(webhook_secret=os.environ["WEBHOOK_SECRET"])

@app.add_webhook("/train")
async def train(payload: WebhookPayload) -> dict[str, str]:
    return {"seen": payload.repo.name}

app.launch()
"""


def test_uploaded_receiver_gets_a_delivery_with_its_secret(sqlite_template: Path, tmp_path: Path) -> None:
    with run_spaces_hub(SqliteEngine(sqlite_template, tmp_path), tmp_path / "hub") as hub:
        # Receivers reject deliveries that are more than five minutes old.
        hub.clock.now = system_clock()
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as ada, running_spaces(hub):
            secrets = [{"key": "WEBHOOK_SECRET", "value": SECRET}]
            space = create_repo(ada, NAME, "space", sdk="gradio", secrets=secrets)["id"]
            client = Client("huggingface_hub-2.4", tmp_path, hub.url)
            folder = str(ROOT / "examples/space")
            done = client.run("hf", "upload", NAME, folder, ".", "--type", "space", token=token)
            assert done.returncode == 0, done.stderr
            until_stage(ada, "RUNNING")
            create_repo(ada, "corpus", "dataset")
            settle(hub)
            url = f"{hub.url}/hosted/{NAME}/webhooks/trigger_training"
            webhook = create_webhook(ada, url, "dataset:ada/corpus", secret=SECRET)
            sha = create_commit(ada, "ada/corpus", {"rows.csv": b"a,b\n"}, repo_type="dataset")
            settle(hub)
            assert [delivery["state"] for delivery in logs(ada, webhook)] == ["delivered"]
            until(lambda: f"training on ada/corpus at {sha}" in log_lines(hub, space, RUN))
            assert f"Receiving webhooks at {hub.url}/hosted/{NAME}" in log_lines(hub, space, RUN)
            assert ada.get(SPACE).json()["runtime"]["stage"] == "RUNNING"


async def test_receiver_of_an_existing_library_runs_unchanged(tmp_path: Path) -> None:
    async with spaces_bed(tmp_path) as bed:
        variables = {"SPACE_ID": "ada/listener", "WEBHOOK_SECRET": SECRET, "GRADIO_ANALYTICS_ENABLED": "False"}
        limits = replace(LIMITS, memory=1024 * MIB, processes=128)
        app = bed.with_code(EXISTING, environment=variables, limits=limits)
        # Installed by `make setup`, as pip would install it from an index.
        installed = Installed(tmp_path / "spaces" / "installed", None)
        (site_packages,) = (ENVIRONMENTS / "webhooks-2.4" / "lib").glob("python3.*/site-packages")
        unfinished = installed.unfinished(app.space)
        (unfinished / "packages").rmdir()
        (unfinished / "packages").symlink_to(site_packages)
        installed.finish(unfinished, "existing")
        running = await bed.runner.start(app, Environment("existing"), bed.lines.append)
        await running.until_listening(START_SECONDS)
        async with asyncio.timeout(START_SECONDS):
            # The library adds the endpoint after it listens.
            while not any("/webhooks/train" in line for line in bed.lines):
                await asyncio.sleep(0.01)
        delivery = signed_delivery("repo.content.update", secret=SECRET)
        headers = "".join(f"{name}: {value}\r\n" for name, value in delivery.headers.items())
        head = f"POST /webhooks/train HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(delivery.body)}\r\n\r\n"
        connection = await running.connect(Connection)
        answer = await connection.exchange(head.encode() + delivery.body, MIB)
        connection.close()
        assert (answer.status, list(json.loads(answer.body))) == (200, ["seen"]), bed.lines
