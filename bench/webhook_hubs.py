"""A hub with webhooks on either engine: events are committed in this process, `hubgate deliver` sends on one core."""

import asyncio
import contextlib
import secrets
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bed.processes import HUBGATE, environment, hubgate

from bench.cores import on_measured_core
from bench.sign_ins import create_user, run_concurrently
from bench.workspace import Workspace
from hubgate.server.accounts.model import Owner, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.events import outbox
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange
from hubgate.server.hub.repos import creation
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.creation import NewRepo
from hubgate.server.hub.repos.model import Repo, RepoOwner, RepoType
from hubgate.server.resources import Hub
from hubgate.server.settings import load
from hubgate.server.startup import opened_for_operator
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.delivering.windows_store import REPLAYS, RETRIES, UNTRIED
from hubgate.server.webhooks.fanout.fanning import FanOut
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

SQLITE, POSTGRES = "hubgate deliver, SQLite", "hubgate deliver, PostgreSQL"
# Many repos, because a webhook receives the next event of a repo only after the first attempt of the previous one.
REPOS = 64
SECRET = "whsec_" + "a" * 32
EVENTS_PER_UNIT = 50
SETTLE_SECONDS = 120.0


# In terms of the partial indexes: a scan of past deliveries would take longer than new ones.
_WAITING = " OR ".join(f"EXISTS (SELECT 1 FROM deliveries d WHERE {each})" for each in (UNTRIED, REPLAYS, RETRIES))
_IS_SETTLED = f"""
    SELECT CASE WHEN EXISTS (SELECT 1 FROM events WHERE fanned_at IS NULL) OR {_WAITING} THEN 0 ELSE 1 END AS is_settled
"""


@dataclass(frozen=True)
class HubConfig:
    """The data folder and settings of a hub; `variables` is the environment of its commands."""

    folder: Path
    settings: Mapping[str, str]

    @property
    def variables(self) -> dict[str, str]:
        return {f"HUBGATE_{key.upper()}": value for key, value in self.settings.items()}


def prepare_hub(workspace: Workspace, engine: str, name: str) -> HubConfig:
    database = f"webhooks_{engine.rpartition(' ')[2].lower()}_{name}"
    folder = workspace.subfolder(database)
    settings = {
        "data_dir": str(folder / "var"),
        "egress_allow": "127.0.0.0/8",
        "webhook_quota": "1000000000",
        "webhooks_per_owner": "1000000",
        "secret_key": secrets.token_urlsafe(48),
    }
    if engine == POSTGRES:
        settings["database_url"] = workspace.postgres_database(database)
    hub_config = HubConfig(folder, settings)
    done = hubgate("migrate", cwd=folder, stdin=b"", **hub_config.variables)
    assert done.returncode == 0, done.stderr
    return hub_config


@dataclass(frozen=True)
class WatchedUser:
    """A user whose repos are watched by many webhooks."""

    hub: Hub
    repos: Sequence[Repo]

    async def commit(self, events: int) -> None:
        """Commit events to the repos in turn, as a push does but without git; durable on return."""
        for first in range(0, events, EVENTS_PER_UNIT):
            numbers = range(first, min(first + EVENTS_PER_UNIT, events))
            await self.hub.db.write(lambda tx, numbers=numbers: self._add(tx, numbers))  # type: ignore[misc]

    async def _add(self, tx: Tx, numbers: range) -> None:
        for number in numbers:
            repo, now = self.repos[number % len(self.repos)], self.hub.clock()
            seq = await repo_store.next_seq(tx, repo.id, now)
            assert seq is not None
            moved = {"updatedRefs": [RefChange("refs/heads/main", repo.head_sha, secrets.token_hex(20))]}
            await outbox.record(tx, Kind.REPO_CONTENT, repo.snapshot, seq, moved, self.hub.settings.base_url, now)

    async def wait_until_settled(self) -> None:
        """Wait until no events or deliveries are pending and all results are stored."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < deadline:
            row = await self.hub.db.one(_IS_SETTLED)
            assert row is not None
            if row["is_settled"]:
                return
            await asyncio.sleep(0.01)
        raise RuntimeError("deliveries did not finish")


@contextlib.asynccontextmanager
async def create_watched_user(
    hub_config: HubConfig, webhooks: int, url: str, name: str = "ada", repos: int = REPOS
) -> AsyncIterator[WatchedUser]:
    """Open the hub next to the delivery process, and create a user with repos and webhooks."""
    async with opened_for_operator(load(hub_config.settings, environment={})) as hub:
        user = await create_user(hub, name)
        created = [await _repo(hub, user, f"repo-{number}") for number in range(repos)]
        # Fan out the creation of the repos before webhooks exist, so that no webhook receives it.
        fan_out = FanOut(hub.webhooks)
        while await fan_out.step():
            continue
        settings = WebhookRequest(url=url, watched=[("user", user.name)], secret=SECRET)
        owner = Owner(user_id=user.id)
        await run_concurrently(lambda _: lifecycle.create(hub.webhooks, owner, settings, SYSTEM), range(webhooks))
        yield WatchedUser(hub, created)


async def _repo(hub: Hub, user: User, name: str) -> Repo:
    owner = RepoOwner("user", user.id, user.name)
    return await creation.create(hub.repos, user, owner, NewRepo(RepoType.MODEL, name), SYSTEM)


@contextlib.contextmanager
def run_delivery_process(hub_config: HubConfig) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `hubgate deliver` on one core, at normal priority."""
    process = subprocess.Popen(
        on_measured_core([*HUBGATE, "deliver"]),
        cwd=hub_config.folder,
        env=environment(**hub_config.variables),
        stdout=subprocess.PIPE,
        stderr=(hub_config.folder / "deliver.log").open("ab"),
    )
    with process:
        try:
            assert process.stdout is not None
            first_line = process.stdout.readline()
            assert b"running" in first_line, (hub_config.folder / "deliver.log").read_text()
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
