"""A hub with webhooks that watch some repos, a load that records acknowledged changes, and the history of a run."""

import contextlib
import fcntl
import math
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx
from tests.bed import fork_server
from tests.bed.blocking import run_blocking
from tests.bed.engines import settings_for
from tests.bed.fork_server import WarmProcess
from tests.bed.lean_http import LeanClient
from tests.bed.processes import TEST_BUILD, HubProcess, environment, hub_process, until
from tests.faults.conftest import Store
from tests.faults.history import Change, DisabledPeriod, Disturbance, History, Incident, violations
from tests.faults.watchers import Watchers, with_webhook_names

from hubgate.server.accounts import signup
from hubgate.server.accounts.model import User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.signup import Candidate
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import SYSTEM
from hubgate.server.hub.repos.creation import NewRepo, create
from hubgate.server.hub.repos.model import RepoOwner, RepoType
from hubgate.server.resources import Hub, open_hub
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

TEST_DELIVER = [sys.executable, "-m", "tests.bed.testdeliver"]
DEFAULT_PACE = {"TEST_PACE": ""}
# A process that has started gets its share of the webhooks within this time, also on a busy machine.
SHARING_SECONDS = 20.0
REPOS = ("ada/one", "ada/two", "ada/hidden")
EVERYTHING, PUBLIC = frozenset(REPOS), frozenset({"ada/one", "ada/two"})
# The webhook's owner, the watched name, and the repos whose events it receives. Only its owner may read a private repo.
ENTITLED = {
    "own": ("ada", "user:ada", EVERYTHING),
    "stranger": ("bob", "user:ada", PUBLIC),
    "repo": ("bob", "model:ada/two", frozenset({"ada/two"})),
    "curious": ("bob", "model:ada/hidden", frozenset[str]()),
    "elsewhere": ("bob", "user:bob", frozenset[str]()),
}


def pace(dead_after: float = 100, deadline: float = 15, heartbeat: float = 0.6) -> dict[str, str]:
    """Variables that set the pace of deliveries, in seconds.

    Others notice at their next heartbeat that a process was killed, but only after `dead_after` that it froze. That is
    long unless a test freezes one: a healthy process that gets no CPU time for a while looks frozen too.
    """
    return {"TEST_PACE": f"{dead_after},{deadline},{heartbeat}"}


def stop_threads(process: WarmProcess) -> None:
    """Send SIGSTOP, and return when it has stopped every thread: one that runs may still begin to write."""
    process.send_signal(signal.SIGSTOP)
    until(lambda: process.poll() is not None or thread_states(process.pid) <= {"T"}, every=0.001)


def thread_states(pid: int) -> set[str]:
    states = set()
    for file in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):
            states.add(file.read_text().rpartition(")")[2].split()[0])
    return states


@dataclass
class Scenario:
    store: Store
    watchers: Watchers
    token: str
    # The names of the webhooks by id.
    names: dict[str, str]
    disabled_periods: list[DisabledPeriod] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    # Frozen processes, and since when.
    frozen: dict[int, float] = field(default_factory=dict)
    # The last known setting of each repo.
    settings: dict[str, bool | None] = field(default_factory=lambda: dict.fromkeys(REPOS, False))

    @property
    def flags(self) -> list[str]:
        return [*self.store.flags, "--egress-allow", "127.0.0.0/8", "--webhook-quota", "1000000"]

    def id_of(self, name: str) -> str:
        return next(webhook_id for webhook_id, given in self.names.items() if given == name)

    @contextlib.contextmanager
    def hub(self, *flags: str, **variables: str) -> Iterator[HubProcess]:
        options = {**pace(), **variables}
        with hub_process(self.store.folder, *self.flags, *flags, program=TEST_BUILD, **options) as hub:
            self._note_start()
            try:
                yield hub
            finally:
                self.kill_hub(hub)

    def kill_hub(self, hub: HubProcess) -> None:
        if hub.process.poll() is None:
            since = time.monotonic()
            hub.kill_all()
            self.note(Incident.DIED, since)

    def deliver(self, database_url: str = "", **variables: str) -> WarmProcess:
        """Start `hubgate deliver` of the test build, and wait until it runs. It may reach the database by another URL,
        through a proxy.
        """
        flags = [database_url if database_url and flag == self.store.url else flag for flag in self.flags]
        given = environment(**{**pace(), **variables})
        with (self.store.folder / "deliver.log").open("ab") as errors:
            process = fork_server.start([*TEST_DELIVER, *flags], self.store.folder, given, errors)
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        # A process with an armed failpoint may already be dead.
        assert b"is running" in line or process.wait(60) < 0
        self._note_start()
        return process

    @contextlib.contextmanager
    def delivering(self, database_url: str = "", **variables: str) -> Iterator[WarmProcess]:
        process = self.deliver(database_url, **variables)
        try:
            yield process
        finally:
            self.kill(process)

    def kill(self, process: WarmProcess) -> None:
        if process.poll() is None:
            since = self.frozen.pop(process.pid, time.monotonic())
            process.kill()
            process.wait(60)
            self.note(Incident.DIED, since)

    def freeze(self, process: WarmProcess) -> None:
        """Freeze a process at a moment at which it does not write: it would block all writers of an SQLite file."""
        self.frozen[process.pid] = time.monotonic()
        stop_threads(process)
        while self.store.url.startswith("sqlite") and not self._is_writable():
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            stop_threads(process)

    def _is_writable(self) -> bool:
        """Whether a writer gets its turn within half a second."""
        with Path(self.store.url.removeprefix("sqlite:///") + "-turn").open("rb") as turn:
            for _ in range(50):
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return True
                time.sleep(0.01)
        return False

    def resume(self, process: WarmProcess) -> None:
        process.send_signal(signal.SIGCONT)
        self.note(Incident.FROZE, self.frozen.pop(process.pid))

    def terminate(self, process: WarmProcess) -> None:
        self.note(Incident.STOPPING, time.monotonic())
        process.terminate()

    def note(self, incident: Incident, since: float) -> None:
        """Note what happened to a process between a time and now."""
        self.disturbances.append(Disturbance(incident, since, time.monotonic()))

    def _note_start(self) -> None:
        """Other processes leave webhooks to one that has started."""
        now = time.monotonic()
        self.disturbances.append(Disturbance(Incident.STOPPING, now, now + SHARING_SECONDS))

    def client(self, hub: HubProcess) -> httpx.Client:
        return LeanClient(base_url=hub.url, headers={"authorization": f"Bearer {self.token}"}, timeout=60)

    def change(self, client: httpx.Client, repo: str) -> bool:
        """Change a setting of a repo, which causes an event; whether the change was acknowledged.

        After a lost response the setting is unknown, so the next change may have no effect and is not counted.
        """
        before, self.settings[repo] = self.settings[repo], None
        response = client.put(f"/api/models/{repo}/settings", json={"discussionsDisabled": not before})
        if response.status_code != 200:
            return False
        self.settings[repo] = not before
        return before is not None

    def change_all(self, client: httpx.Client, *repos: str, times: int = 1) -> int:
        """Change each repo this many times; the number of changes, all of which must be acknowledged."""
        for repo in repos * times:
            assert self.change(client, repo)
        return times * len(repos)

    def rows(self, sql: str) -> Sequence[tuple[object, ...]]:
        if self.store.url.startswith("sqlite"):
            # Without the hub's lock, which a writer that gets little CPU time may hold for seconds.
            with contextlib.closing(sqlite3.connect(self.store.url.removeprefix("sqlite:///"))) as connection:
                return connection.execute(sql).fetchall()

        async def read() -> list[tuple[object, ...]]:
            connection = await asyncpg.connect(self.store.url)
            try:
                return [tuple(row) for row in await connection.fetch(sql)]
            finally:
                await connection.close()

        return run_blocking(read())

    def shares(self) -> list[int]:
        """How many shards each running process owns; shards without an owner count as 0."""
        sql = "SELECT count(p.sender_id) FROM senders s LEFT JOIN shards p ON p.sender_id = s.id GROUP BY s.id"
        return sorted(int(str(count)) for (count,) in self.rows(sql))

    def until_shared(self, processes: int, seconds: float = 60.0) -> None:
        """Wait until this many processes have the same number of shards, or one more."""
        shares = sorted(256 // processes + (place < 256 % processes) for place in range(processes))
        try:
            until(lambda: self.shares() == shares, seconds, every=0.05)
        except AssertionError as error:
            log = (self.store.folder / "deliver.log").read_text()
            raise AssertionError(f"{self.shares()} instead of {shares}\n{log[-3000:]}") from error

    def backlog(self) -> int:
        """The number of events that are not fanned out yet and of deliveries that are waiting."""
        sql = """
            SELECT (SELECT count(*) FROM events WHERE fanned_at IS NULL)
                + (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying', 'parked'))
        """
        ((count,),) = self.rows(sql)
        return int(str(count))

    def is_settled(self) -> bool:
        return self.backlog() == 0

    def until_settled(self, seconds: float = 120.0) -> None:
        """Wait until everything is delivered, and until the receivers have noted it."""
        try:
            until(self.is_settled, seconds, every=0.05)
            until(lambda: self.watchers.waiting == 0, seconds)
        except AssertionError as error:
            left = self.rows(
                "SELECT state, attempts, due_at, webhook_id, repo_seq FROM deliveries WHERE ended_at IS NULL"
            )
            owned = self.rows("SELECT sender_id, count(*), min(shard), max(shard) FROM shards GROUP BY sender_id")
            wakes = self.rows("SELECT shard, webhook_id FROM wakes")
            log = (self.store.folder / "deliver.log").read_text()
            raise AssertionError(f"left: {left}\nowners: {owned}\nwakes: {wakes}\n{log[-4000:]}") from error

    def settle(self) -> None:
        """Deliver everything, with a process that is not disturbed. A backlog that stops shrinking fails the test."""
        with self.delivering():
            left = self.backlog()
            while left:
                until(lambda before=left: self.backlog() < before, 120, every=0.2)  # type: ignore[misc]
                left = self.backlog()

    def changes(self) -> frozenset[Change]:
        """Changes committed since the repos were created."""
        sql = "SELECT r.name, e.repo_seq FROM events e JOIN repos r ON r.id = e.repo_id WHERE e.repo_seq > 1"
        found = self.rows(sql)
        return frozenset(Change(f"ada/{name}", int(str(seq))) for name, seq in found)

    def check(self, acknowledged: int, final_states: Sequence[str] = ("delivered",)) -> None:
        """Check all invariants."""
        # A receiver notes a request after its response.
        until(lambda: self.watchers.waiting == 0)
        committed = self.changes()
        assert len(committed) >= acknowledged, "an acknowledged change is missing"
        entitled = {name: repos for name, (_, _, repos) in ENTITLED.items()}
        received = with_webhook_names(self.watchers.received, self.names)
        still_frozen = [Disturbance(Incident.FROZE, since, math.inf) for since in self.frozen.values()]
        disturbances = [*self.disturbances, *still_frozen]
        history = History(committed, entitled, received, self.disabled_periods, disturbances)
        found = violations(history)
        assert not found, found
        assert self.rows("SELECT DISTINCT state FROM deliveries ORDER BY state") == [(state,) for state in final_states]


def create_scenario(store: Store, watchers: Watchers) -> Scenario:
    async def work() -> Scenario:
        hub = await open_hub(settings_for(store.url, store.folder / "data", egress_allow="127.0.0.0/8"))
        try:
            users = {name: await _create_user(hub, name) for name in ("ada", "bob")}
            ada = users["ada"]
            token, _ = await personal.create(hub.accounts, ada, "test", TokenRole.WRITE, "127.0.0.1")
            for name in REPOS:
                new_repo = NewRepo(RepoType.MODEL, name.partition("/")[2], private=name == "ada/hidden")
                await create(hub.repos, ada, RepoOwner("user", ada.id, ada.name), new_repo, SYSTEM)
            # Mark the creation of the repos as fanned out, so that no webhook receives it.
            await hub.db.write(lambda tx: tx.exec("UPDATE events SET fanned_at = created_at"))
            names = {}
            for name, (owner, watched, _) in ENTITLED.items():
                kind, _, target = watched.partition(":")
                request = WebhookRequest(url=watchers.url(name), watched=[(kind, target)])
                names[await _create_webhook(hub, users[owner], request, upper_half=name == "stranger")] = name
            return Scenario(store, watchers, token, names)
        finally:
            await hub.close()

    return run_blocking(work())


async def _create_webhook(hub: Hub, owner: User, request: WebhookRequest, *, upper_half: bool) -> str:
    """Create a webhook in one half of the shards: of two processes, both have something to send."""
    while True:
        stored = await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=owner.id), request, SYSTEM)
        webhook_id = stored.webhook.id
        if (int(webhook_id[-2:], 16) >= 128) == upper_half:
            return webhook_id
        for sql in ("DELETE FROM watches WHERE webhook_id = :id", "DELETE FROM webhooks WHERE id = :id"):
            await hub.db.write(lambda tx, sql=sql: tx.exec(sql, {"id": webhook_id}))  # type: ignore[misc]


async def _create_user(hub: Hub, name: str) -> User:
    candidate = Candidate(name, f"{name}@example.org", "")
    return await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)


@dataclass
class ChangeLoad:
    """One client for each repo, which changes it again after each response and a pause in seconds."""

    scenario: Scenario
    url: str
    # Changes so far.
    acknowledged: int = 0
    pause: float = 0.01

    def __post_init__(self) -> None:
        self._stop, self._enough = threading.Event(), threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(repo,)) for repo in REPOS]

    def start(self) -> "ChangeLoad":
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, count: int, seconds: float = 120.0) -> None:
        with self._enough:
            assert self._enough.wait_for(lambda: self.acknowledged >= count, seconds), "the load made no progress"

    def stop(self) -> int:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
        return self.acknowledged

    def _run(self, repo: str) -> None:
        headers = {"authorization": f"Bearer {self.scenario.token}"}
        with LeanClient(base_url=self.url, headers=headers, timeout=60) as client:
            while not self._stop.wait(self.pause):
                try:
                    done = self.scenario.change(client, repo)
                except httpx.TransportError:
                    continue
                if done:
                    with self._enough:
                        self.acknowledged += 1
                        self._enough.notify_all()
