"""The example in `examples/space`, uploaded with an existing client, receives a delivery."""

from pathlib import Path

from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import ROOT, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_commit, create_repo
from tests.bed.spaces import run_spaces_hub
from tests.bed.webhooks import create_webhook, logs, settle
from tests.spaces.life import NAME, SPACE, log_lines, running_spaces, until_stage

from hubgate.server.clock import system_clock
from hubgate.server.spaces.logs_store import RUN


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
            assert ada.get(SPACE).json()["runtime"]["stage"] == "RUNNING"
