"""A hub with watchers of some repos: changes that know what was acknowledged, and the history of a run."""

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import httpx
from tests.bed.blocking import run_blocking
from tests.bed.engines import opened_database, settings_for
from tests.bed.people import PASSWORD
from tests.bed.processes import TEST_BUILD, HubProcess, environment, hub_process, until
from tests.faults.conftest import Store
from tests.faults.history import Change, History, Silence, complaints
from tests.faults.watchers import Watchers, named

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
# Leases of two seconds, deadlines of one.
QUICK = {"TEST_PACE": "2,1"}
REPOS = ("ada/one", "ada/two", "ada/hidden")
EVERYTHING, PUBLIC = frozenset(REPOS), frozenset({"ada/one", "ada/two"})
# Owner of the webhook, what it watches, which repos it receives. A private repo is for its owner only.
ENTITLED = {
    "own": ("ada", "user:ada", EVERYTHING),
    "stranger": ("bob", "user:ada", PUBLIC),
    "repo": ("bob", "model:ada/two", frozenset({"ada/two"})),
    "curious": ("bob", "model:ada/hidden", frozenset[str]()),
    "elsewhere": ("bob", "user:bob", frozenset[str]()),
}


@dataclass
class Scene:
    store: Store
    watchers: Watchers
    token: str
    # Ids of webhooks to their names.
    names: dict[str, str]
    silences: list[Silence] = field(default_factory=list)
    # The last known setting of each repo.
    settings: dict[str, bool | None] = field(default_factory=lambda: dict.fromkeys(REPOS, False))

    @property
    def flags(self) -> list[str]:
        return [*self.store.flags, "--egress-allow", "127.0.0.0/8", "--webhook-quota", "1000000"]

    def id_of(self, name: str) -> str:
        return next(webhook_id for webhook_id, given in self.names.items() if given == name)

    @contextlib.contextmanager
    def hub(self, *flags: str, **variables: str) -> Iterator[HubProcess]:
        options = {**QUICK, **variables}
        with hub_process(self.store.folder, *self.flags, *flags, program=TEST_BUILD, **options) as hub:
            yield hub

    def deliver(self, **variables: str) -> "subprocess.Popen[bytes]":
        """`hubgate deliver` of the test build; it is running when this returns."""
        with (self.store.folder / "deliver.log").open("ab") as errors:
            process = subprocess.Popen(
                [*TEST_DELIVER, *self.flags],
                cwd=self.store.folder,
                env=environment(**{**QUICK, **variables}),
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        assert process.stdout is not None
        with process.stdout:
            line = process.stdout.readline()
        # An armed process may already be dead.
        assert b"is running" in line or process.wait(20) < 0
        return process

    @contextlib.contextmanager
    def delivering(self, **variables: str) -> Iterator["subprocess.Popen[bytes]"]:
        process = self.deliver(**variables)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(20)

    def client(self, hub: HubProcess) -> httpx.Client:
        return httpx.Client(base_url=hub.url, headers={"authorization": f"Bearer {self.token}"}, timeout=40)

    def change(self, client: httpx.Client, repo: str) -> bool:
        """One event; True if it was acknowledged. After a lost answer the setting is unknown."""
        before, self.settings[repo] = self.settings[repo], None
        answer = client.put(f"/api/models/{repo}/settings", json={"discussionsDisabled": not before})
        if answer.status_code != 200:
            return False
        self.settings[repo] = not before
        return before is not None

    def changed(self, client: httpx.Client, *repos: str, times: int = 1) -> int:
        """The number of changes."""
        for repo in repos * times:
            assert self.change(client, repo)
        return times * len(repos)

    def rows(self, sql: str) -> Sequence[tuple[object, ...]]:
        async def read() -> list[tuple[object, ...]]:
            async with opened_database(self.store.url) as db:
                return [tuple(row) for row in await db.read_long(lambda tx: tx.all(sql))]

        return run_blocking(read())

    def is_settled(self) -> bool:
        """Every event is fanned out, and no delivery is waiting."""
        sql = """
            SELECT (SELECT count(*) FROM events WHERE fanned_at IS NULL)
                + (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'retrying', 'parked'))
        """
        return self.rows(sql) == [(0,)]

    def settle(self, seconds: float = 90.0) -> None:
        """With a process that is not disturbed."""
        with self.delivering():
            until(self.is_settled, seconds)

    def changes(self) -> frozenset[Change]:
        """Changes committed since the repos were created."""
        sql = "SELECT r.name, e.repo_seq FROM events e JOIN repos r ON r.id = e.repo_id WHERE e.repo_seq > 1"
        found = self.rows(sql)
        return frozenset(Change(f"ada/{name}", int(str(seq))) for name, seq in found)

    def check(self, acknowledged: int, ended: Sequence[str] = ("delivered",)) -> None:
        """Check all invariants."""
        committed = self.changes()
        assert len(committed) >= acknowledged, "an acknowledged change is gone"
        entitled = {name: repos for name, (_, _, repos) in ENTITLED.items()}
        arrivals = named(self.watchers.arrivals, self.names)
        history = History(committed, entitled, arrivals, self.silences)
        assert complaints(history) == []
        assert self.rows("SELECT DISTINCT state FROM deliveries ORDER BY state") == [(state,) for state in ended]


def make_scene(store: Store, watchers: Watchers) -> Scene:
    async def work() -> Scene:
        hub = await open_hub(settings_for(store.url, store.folder / "data", egress_allow="127.0.0.0/8"))
        try:
            people = {name: await _person(hub, name) for name in ("ada", "bob")}
            ada = people["ada"]
            token, _ = await personal.create(hub.accounts, ada, "test", TokenRole.WRITE, "127.0.0.1")
            for name in REPOS:
                wanted = NewRepo(RepoType.MODEL, name.partition("/")[2], private=name == "ada/hidden")
                await create(hub.repos, ada, RepoOwner("user", ada.id, ada.name), wanted, SYSTEM)
            # A webhook receives nothing from before its creation.
            await hub.db.write(lambda tx: tx.exec("UPDATE events SET fanned_at = created_at"))
            names = {}
            for name, (who, watched, _) in ENTITLED.items():
                kind, _, target = watched.partition(":")
                asked = WebhookRequest(url=watchers.url(name), watched=[(kind, target)])
                kept = await lifecycle.create(hub.webhooks, lifecycle.Owner(user_id=people[who].id), asked, SYSTEM)
                names[kept.webhook.id] = name
            return Scene(store, watchers, token, names)
        finally:
            await hub.close()

    return run_blocking(work())


async def _person(hub: Hub, name: str) -> User:
    candidate = Candidate(name, f"{name}@example.org", PASSWORD)
    return await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)


@dataclass
class ChangeLoad:
    """One client for each repo, which changes it as fast as it is answered. `acknowledged` counts the changes."""

    scene: Scene
    url: str
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self._stop, self._enough = threading.Event(), threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(repo,)) for repo in REPOS]

    def start(self) -> "ChangeLoad":
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, count: int, seconds: float = 60.0) -> None:
        with self._enough:
            assert self._enough.wait_for(lambda: self.acknowledged >= count, seconds), "the load got nowhere"

    def stop(self) -> int:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        return self.acknowledged

    def _run(self, repo: str) -> None:
        headers = {"authorization": f"Bearer {self.scene.token}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=20) as client:
            while not self._stop.wait(0.01):
                try:
                    done = self.scene.change(client, repo)
                except httpx.TransportError:
                    continue
                if done:
                    with self._enough:
                        self.acknowledged += 1
                        self._enough.notify_all()
