"""`hubgate spaces`: state, logs, restart, pause and secrets on the command line."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import HUBGATE, environment, hubgate
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import append_log, create_space, find_space, run_spaces_hub, set_stage
from tests.cli.test_user_commands import Shell

from hubgate.server.metrics import SPACE_GAUGES
from hubgate.server.resources import Hub
from hubgate.server.spaces import environment as space_environment
from hubgate.server.spaces.gauges import read_gauges
from hubgate.server.spaces.logs_store import BUILD, RUN
from hubgate.server.spaces.model import Stage

pytestmark = pytest.mark.one_engine


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(engine, tmp_path / "hub") as running:
        yield running


@pytest.fixture
def shell(hub: RunningHub, tmp_path: Path) -> Shell:
    return Shell(hub, tmp_path, create_token(hub, create_user(hub, "ada")))


@pytest.fixture
def space(hub: RunningHub, shell: Shell) -> str:
    with api(hub, shell.variables["HUBGATE_TOKEN"]) as ada:
        return create_space(ada)


def test_spaces_are_listed_restarted_and_paused(hub: RunningHub, shell: Shell, space: str) -> None:
    set_stage(hub, space, Stage.RUNTIME_ERROR, "It ended five times.")
    assert shell.says("spaces", "list").split("\n")[1].split() == [
        *("ada/listener", "RUNTIME_ERROR", "It", "ended", "five", "times.")
    ]
    assert shell.says("spaces", "restart", "listener", "--factory") == "✓ ada/listener: BUILDING\n"
    assert find_space(hub, space).factory_version == 2
    assert shell.json("spaces", "pause", "ada/listener")["stage"] == "PAUSED"
    assert shell.json("spaces", "list")[0]["id"] == "ada/listener"
    assert "not found" in shell.refused("spaces", "pause", "ada/nothing").lower()


def test_secret_is_read_from_standard_input(hub: RunningHub, shell: Shell, space: str) -> None:
    done = shell.run("spaces", "secrets", "listener", "set", "PRIVATE_KEY", stdin=b"line one\nline two\n")
    assert (done.returncode, done.stdout) == (0, "✓ Set PRIVATE_KEY. An app that runs is started again with it.\n")

    async def opened(running: Hub) -> dict[str, str]:
        return await space_environment.opened(running.spaces, space)

    assert hub.call(opened) == {"PRIVATE_KEY": "line one\nline two"}
    assert "empty" in shell.refused("spaces", "secrets", "listener", "set", "OTHER", stdin=b"")
    assert "set by the hub" in shell.refused("spaces", "secrets", "listener", "set", "PORT", stdin=b"x")
    assert shell.says("spaces", "secrets", "listener", "delete", "PRIVATE_KEY") == "✓ Deleted PRIVATE_KEY.\n"
    assert hub.call(opened) == {}


def test_logs_are_printed_and_followed(hub: RunningHub, shell: Shell, space: str) -> None:
    append_log(hub, space, RUN, [f"line {n}" for n in range(450)] + ["\x1b[31mred"])
    append_log(hub, space, BUILD, ['  File "app.py",  line 1'])
    printed = shell.says("spaces", "logs", "listener").splitlines()
    assert (len(printed), printed[0], "\x1b" in printed[450], "red" in printed[450]) == (451, "line 0", False, True)
    assert shell.says("spaces", "logs", "listener", "--build") == '  File "app.py",  line 1\n'
    command = [*HUBGATE, "spaces", "logs", "listener", "--build", "--follow"]
    with subprocess.Popen(
        command, cwd=shell.folder, env={**environment(), **shell.variables}, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == '  File "app.py",  line 1\n'
        append_log(hub, space, BUILD, ["Installed"])
        assert following.stdout.readline() == "Installed\n"
        following.terminate()


def test_doctor_says_what_is_missing_to_run_spaces(tmp_path: Path) -> None:
    stored = hubgate("doctor", cwd=tmp_path).stdout
    assert "HUBGATE_SPACES_RUNNER=bubblewrap" in stored
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to("/usr/bin/git")
    missing = hubgate("doctor", cwd=tmp_path, HUBGATE_SPACES_RUNNER="bubblewrap", PATH=str(tmp_path / "bin"))
    assert missing.returncode == 1
    assert "apt-get install bubblewrap" in missing.stdout


def test_gauges_count_spaces_by_state(hub: RunningHub, shell: Shell, space: str) -> None:
    async def gauges(opened: Hub) -> dict[str, float]:
        return await read_gauges(opened.db)

    assert hub.call(gauges) == dict.fromkeys(SPACE_GAUGES, 0) | {"hubgate_spaces_starting": 1}
    for stage, name in (
        (Stage.RUNNING_BUILDING, "running"),
        (Stage.SLEEPING, "sleeping"),
        (Stage.BUILD_ERROR, "failed"),
    ):
        set_stage(hub, space, stage)
        assert hub.call(gauges) == dict.fromkeys(SPACE_GAUGES, 0) | {f"hubgate_spaces_{name}": 1}
