"""Several processes that run Spaces, and the limits on how many run."""

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import hubgate, until
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import find_space, run_spaces_hub
from tests.spaces.life import PACE, SPACE, add_space, app, post, running_spaces, until_stage

from hubgate.server.resources import Hub
from hubgate.server.spaces.host import leases_store
from hubgate.server.storage.database import Tx


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(engine, tmp_path, spaces_per_owner="1") as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


def test_space_beyond_the_limit_waits_and_says_so(hub: RunningHub, ada: httpx.Client) -> None:
    add_space(ada, {"app.py": app(1)})
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        other = add_space(ada, {"app.py": app(2)}, name="ada/other")
        hub.clock.advance(6)
        until(lambda: "1 of one owner" in find_space(hub, other).message)
        ada.post(f"{SPACE}/pause").raise_for_status()
        until_stage(ada, "RUNNING", name="ada/other")
        assert find_space(hub, other).message == ""
        assert post(anyone, name="ada/other").json()["version"] == 2


def test_process_that_was_taken_over_starts_again(hub: RunningHub, ada: httpx.Client) -> None:
    """Another process has ended its leases, as after a pause of the machine: its app stops, and is started again."""
    space = add_space(ada, {"app.py": app()})
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        before = find_space(hub, space).process
        assert before is not None

        async def take_over(opened: Hub) -> None:
            async def unit(tx: Tx) -> None:
                assert await leases_store.end_process(tx, before)

            await opened.db.write(unit)

        hub.call(take_over)
        until(lambda: find_space(hub, space).process not in (None, before))
        assert post(anyone).status_code == 200
        sockets = hub.settings.data_dir / "spaces" / "sockets"
        until(lambda: len(list(sockets.iterdir())) == 1)


@pytest.mark.one_engine
def test_apps_end_while_the_database_does_not_respond(hub: RunningHub, ada: httpx.Client) -> None:
    """Another process may start them, so they must not run here any more. They start again with the database."""
    add_space(ada, {"app.py": app()})
    sockets = hub.settings.data_dir / "spaces" / "sockets"
    with running_spaces(hub, replace(PACE, dead_after=3)), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        path = hub.settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: not any(sockets.iterdir()))
            other.execute("ROLLBACK")
        assert post(anyone).status_code == 200


def test_two_processes_share_the_spaces(hub: RunningHub, ada: httpx.Client) -> None:
    """Each Space runs in one of them, and requests reach it there. The one that stays takes over what the other ran."""
    add_space(ada, {"app.py": app(1)})
    bob = create_user(hub, "bob")
    with running_spaces(hub, max_running=1), hub.client() as anyone, api(hub, create_token(hub, bob)) as other:
        until_stage(ada, "RUNNING")
        with running_spaces(hub, max_running=1):
            add_space(other, {"app.py": app(2)}, name="bob/listener")
            until_stage(other, "RUNNING", name="bob/listener")
            answers = [post(anyone, name=name).json()["version"] for name in ("ada/listener", "bob/listener")]
            assert answers == [1, 2]
        ada.post(f"{SPACE}/pause").raise_for_status()
        assert post(anyone, name="bob/listener").json()["version"] == 2


@pytest.mark.one_engine
def test_hub_does_not_start_with_a_runner_that_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("git", "python3"):
        (tmp_path / "bin" / name).symlink_to(f"/usr/bin/{name}")
    done = hubgate("serve", "--port", "0", cwd=tmp_path, HUBGATE_SPACES_RUNNER="bubblewrap", PATH=str(tmp_path / "bin"))
    assert done.returncode == 1
    assert "HUBGATE_SPACES_RUNNER=bubblewrap cannot be used here. The program bwrap is missing." in done.stderr
    assert "apt-get install bubblewrap" in done.stderr


@pytest.mark.one_engine
def test_app_that_is_being_stopped_ends_while_the_database_does_not_respond(hub: RunningHub, ada: httpx.Client) -> None:
    """Its lease ends too: the app must not run beside the next one."""
    ignores = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    space = add_space(ada, {"app.py": ignores + app()})
    sockets = hub.settings.data_dir / "spaces" / "sockets"
    with running_spaces(hub, replace(PACE, dead_after=3, grace=60)):
        until_stage(ada, "RUNNING")
        ada.post(f"{SPACE}/pause").raise_for_status()
        until(lambda: find_space(hub, space).running_version is None)
        path = hub.settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: not any(sockets.iterdir()), seconds=20)
            other.execute("ROLLBACK")
    # A socket of its proxies that is still open is a warning here, which fails the test.
    gc.collect()
