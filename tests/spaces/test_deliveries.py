"""A hosted receiver and the deliveries of its hub: uploaded with `hf`, asleep, and woken by a delivery."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.clients import Client
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import find_space, run_spaces_hub
from tests.bed.webhooks import create_webhook, logs, settle
from tests.spaces.life import CARD, NAME, app, log_lines, running_spaces, until_stage


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(engine, tmp_path) as started:
        yield started


@pytest.fixture
def token(hub: RunningHub) -> str:
    return create_token(hub, create_user(hub, "ada"))


@pytest.fixture
def ada(hub: RunningHub, token: str) -> Iterator[httpx.Client]:
    with api(hub, token) as client:
        yield client


@pytest.mark.one_engine
def test_uploaded_receiver_sleeps_and_a_delivery_wakes_it(
    hub: RunningHub, ada: httpx.Client, token: str, tmp_path: Path
) -> None:
    """With a given clock, so the app checks no signatures; `tests/faults/test_spaces.py` has a receiver that does."""
    space: str = create_repo(ada, NAME, "space")["id"]
    upload(hub, token, tmp_path)
    create_repo(ada, "corpus", "dataset")
    webhook = create_webhook(ada, f"{hub.url}/hosted/{NAME}/webhooks/train", "dataset:ada/corpus")
    with running_spaces(hub):
        until_stage(ada, "RUNNING")
        deliver(hub, ada, "first")
        hub.clock.advance(49 * 3600)
        until_stage(ada, "SLEEPING")
        until(lambda: find_space(hub, space).process is None)
        deliver(hub, ada, "second")
        until_stage(ada, "RUNNING")
        sent = logs(ada, webhook)
        assert {entry["status"] for entry in sent} == {200}
        until(lambda: log_lines(hub, space, "run").count("got /webhooks/train") == len(sent))


def upload(hub: RunningHub, token: str, folder: Path) -> None:
    files, home = folder / "files", folder / "home"
    files.mkdir()
    home.mkdir()
    (files / "README.md").write_text(CARD)
    (files / "app.py").write_text(app())
    client = Client("huggingface_hub-2.4", home, hub.url)
    done = client.run("hf", "upload", NAME, str(files), "--repo-type", "space", token=token, HF_HUB_DISABLE_XET="1")
    assert done.returncode == 0, done.stderr


def deliver(hub: RunningHub, ada: httpx.Client, text: str) -> None:
    """Change the dataset, and send what is due."""
    create_commit(ada, "ada/corpus", {"a.txt": text.encode()}, repo_type="dataset")
    settle(hub)
