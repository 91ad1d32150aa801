"""huggingface_hub and its command `hf` manage a Space that the hub runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import append_log, run_spaces_hub, set_stage

from hubgate.server.resources import Hub
from hubgate.server.spaces.logs_store import RUN
from hubgate.server.spaces.model import Stage

_MANAGE = """
import json
from huggingface_hub import HfApi

api, name = HfApi(), "ada/listener"
api.create_repo(
    name, repo_type="space", space_sdk="gradio", space_hardware="cpu-basic", space_sleep_time=7200,
    space_secrets=[{"key": "A", "value": "1"}], space_variables=[{"key": "B", "value": "2"}],
)
first = api.get_space_runtime(name)
assert (first.stage, first.requested_hardware, first.sleep_time) == ("BUILDING", "cpu-basic", 7200), first
info = api.space_info(name)
assert (info.runtime.stage, info.subdomain) == ("BUILDING", "ada-listener")
assert info.host.endswith("/hosted/ada/listener")
api.add_space_secret(name, "TOKEN", "very-secret", description="For the API")
api.delete_space_secret(name, "A")
assert [*api.add_space_variable(name, "MODE", "fast")] == ["B", "MODE"]
api.delete_space_variable(name, "B")
assert {key: each.value for key, each in api.get_space_variables(name).items()} == {"MODE": "fast"}
if hasattr(api, "get_space_secrets"):
    assert {key: each.description for key, each in api.get_space_secrets(name).items()} == {"TOKEN": "For the API"}
assert api.set_space_sleep_time(name, 3600).sleep_time == 3600
assert api.request_space_hardware(name, "cpu-basic").requested_hardware == "cpu-basic"
assert api.pause_space(name).stage == "PAUSED"
assert api.restart_space(name, factory_reboot=True).stage == "BUILDING"
"""


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(SqliteEngine(sqlite_template, tmp_path), tmp_path / "hub") as running:
        yield running


@pytest.fixture
def token(hub: RunningHub) -> str:
    return create_token(hub, create_user(hub, "ada"))


def repo_id(hub: RunningHub) -> str:
    async def work(opened: Hub) -> str:
        row = await opened.db.one("SELECT repo_id FROM spaces")
        assert row is not None
        found: str = row["repo_id"]
        return found

    return hub.call(work)


@pytest.mark.parametrize("version", ["0.36", "2.4"])
def test_library_manages_a_space(hub: RunningHub, tmp_path: Path, token: str, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, hub.url)
    done = client.run("python", "-c", _MANAGE, token=token)
    assert done.returncode == 0, done.stderr


def test_command_manages_a_space(hub: RunningHub, tmp_path: Path, token: str) -> None:
    client = Client("huggingface_hub-2.4", tmp_path, hub.url)

    def hf(*arguments: str) -> str:
        done = client.run("hf", *arguments, token=token)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    hf("repos", "create", "ada/listener", "--type", "space", "--space-sdk", "gradio")
    space = repo_id(hub)
    hf("spaces", "secrets", "add", "ada/listener", "-s", "TOKEN=very-secret")
    assert "TOKEN" in hf("spaces", "secrets", "ls", "ada/listener")
    hf("spaces", "variables", "add", "ada/listener", "-e", "MODE=fast")
    assert "fast" in hf("spaces", "variables", "ls", "ada/listener")
    hf("spaces", "pause", "ada/listener")
    hf("spaces", "restart", "ada/listener")
    assert "cpu-basic" in hf("spaces", "hardware")
    hf("spaces", "settings", "ada/listener", "--sleep-time", "3600")
    set_stage(hub, space, Stage.RUNNING)
    hf("spaces", "wait", "ada/listener")
    append_log(hub, space, RUN, ["Uvicorn running", "second line"])
    assert hf("spaces", "logs", "ada/listener").splitlines()[-2:] == ["Uvicorn running", "second line"]
    assert json.loads(hf("spaces", "info", "ada/listener", "--format", "json"))["runtime"]["stage"] == "RUNNING"
