"""Several processes that run Spaces, and the limits on how many run."""

import asyncio
import gc
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import hubgate, until
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import find_space, run_spaces_hub
from tests.spaces.life import PACE, SPACE, add_space, app, post, push, running_spaces, until_stage

from hubgate.server.errors import StorageUnavailable
from hubgate.server.resources import Hub
from hubgate.server.spaces.bubblewrap.runner import BubblewrapRunner
from hubgate.server.spaces.bubblewrap.running import RunningApp
from hubgate.server.spaces.host import leases_store
from hubgate.server.spaces.host.hosted_space import HostedSpace
from hubgate.server.spaces.runner import App, Environment, Log
from hubgate.server.storage.database import Tx
from hubgate.server.worker.spaces import egress_for_spaces, host_context


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
        until(lambda: post(anyone).status_code == 200)


@pytest.mark.one_engine
def test_app_runs_on_if_the_database_responds_again_soon(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app()})
    sockets = hub.settings.data_dir / "spaces" / "sockets"
    with running_spaces(hub, replace(PACE, dead_after=300)), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        until(lambda: find_space(hub, space).used_memory is not None)
        before = list(sockets.iterdir())
        path = hub.settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

            async def fail_to_write(opened: Hub) -> None:
                # All that waited before it fail with it, or before it.
                with pytest.raises(StorageUnavailable):
                    await opened.db.write(lambda tx: tx.exec("UPDATE spaces SET used_cpu = 0"))

            for _ in range(2):
                hub.call(fail_to_write)
            other.execute("ROLLBACK")
        assert post(anyone).status_code == 200
        assert list(sockets.iterdir()) == before


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
def test_space_that_is_deleted_while_it_is_leased_stops_no_others(hub: RunningHub, ada: httpx.Client) -> None:
    add_space(ada, {"app.py": app()})
    path = hub.settings.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as other:
        delete = "DELETE FROM spaces WHERE repo_id = new.repo_id"
        other.execute(f"CREATE TRIGGER deleted AFTER UPDATE OF process ON spaces BEGIN {delete}; END")
    with running_spaces(hub):
        until(lambda: not space_ids(hub))
    assert "will be retried" not in hub.log


def space_ids(hub: RunningHub) -> list[str]:
    async def work(opened: Hub) -> list[str]:
        return await opened.db.read(leases_store.all_ids)

    return hub.call(work)


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
    with running_spaces(hub, replace(PACE, dead_after=3, grace=600)):
        until_stage(ada, "RUNNING")
        ada.post(f"{SPACE}/pause").raise_for_status()
        until(lambda: find_space(hub, space).running_version is None)
        path = hub.settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: not any(sockets.iterdir()))
            other.execute("ROLLBACK")
    # A socket of its proxies that is still open is a warning here, which fails the test.
    gc.collect()


IGNORES = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def replace_app(hub: RunningHub, ada: httpx.Client, space: str) -> None:
    until_stage(ada, "RUNNING")
    before = find_space(hub, space).running_version
    push(ada, {"app.py": app(2)})
    until(lambda: find_space(hub, space).running_version not in (None, before))


@pytest.mark.one_engine
@pytest.mark.parametrize("next_version", ["serves", "is paused"])
def test_app_that_was_replaced_ends_while_the_database_does_not_respond(
    hub: RunningHub, ada: httpx.Client, next_version: str
) -> None:
    space = add_space(ada, {"app.py": IGNORES + app(1)})
    folder = hub.settings.data_dir / "spaces"
    with running_spaces(hub, replace(PACE, dead_after=3, grace=3600)):
        replace_app(hub, ada, space)
        if next_version == "is paused":
            ada.post(f"{SPACE}/pause").raise_for_status()
            until(lambda: len(list((folder / "sockets").iterdir())) == 1)
        path = hub.settings.database_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: not any((folder / "sockets").iterdir()))
            until(lambda: not any((folder / "hosted").iterdir()))
            other.execute("ROLLBACK")


@pytest.mark.one_engine
def test_app_that_was_replaced_does_not_delay_the_end_of_the_process(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": IGNORES + app(1)})
    with running_spaces(hub, replace(PACE, grace=3600, last_grace=0.1)):
        replace_app(hub, ada, space)


class AbandonedApp:
    """An app in a real sandbox whose Space is abandoned as soon as it listens."""

    def __init__(self, running: RunningApp, abandon: Callable[[], None]) -> None:
        self._running, self._abandon = running, abandon

    def __getattr__(self, name: str) -> Any:
        return getattr(self._running, name)

    async def until_listening(self, seconds: float) -> None:
        await self._running.until_listening(seconds)
        self._abandon()


class AbandoningRunner(BubblewrapRunner):
    space: HostedSpace
    abandoning: "asyncio.Task[None] | None" = None

    async def start(self, app: App, environment: Environment, log: Log) -> Any:
        return AbandonedApp(await super().start(app, environment, log), self._abandon)

    def _abandon(self) -> None:
        self.abandoning = asyncio.create_task(self.space.abandon())


@pytest.mark.one_engine
def test_app_that_listens_just_when_its_lease_ends_ends_too(hub: RunningHub, ada: httpx.Client) -> None:
    add_space(ada, {"app.py": app()})
    folder, egress = hub.settings.data_dir / "spaces", egress_for_spaces(hub.settings)
    runner = AbandoningRunner(folder)

    async def run(opened: Hub) -> list[Path]:
        context = replace(host_context(opened, egress, PACE), runner=runner)
        await opened.db.write(lambda tx: leases_store.add_process(tx, "first", "a machine"))
        await opened.db.write(lambda tx: leases_store.claim(tx, "first", per_owner=1))
        (row,) = await leases_store.leased(opened.db, "first")
        runner.space = HostedSpace(context, row, "first")
        try:
            while runner.abandoning is None:
                await asyncio.sleep(0.01)
            await runner.abandoning
            return list((folder / "sockets").iterdir())
        finally:
            await runner.close()
            egress.close()

    assert hub.call(run) == []
