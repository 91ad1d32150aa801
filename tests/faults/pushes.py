"""A load of pushes and commits that records acknowledged changes, and a check that git, database and events agree."""

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from tests.bed.blocking import run_blocking
from tests.bed.engines import opened_database, settings_for
from tests.bed.git import WorkingCopy, repo_url, run_git
from tests.bed.lean_http import LeanClient
from tests.bed.people import PASSWORD
from tests.bed.processes import HubProcess
from tests.bed.repos import send_commit
from tests.faults.conftest import Store

from hubgate.server.accounts import signup
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.signup import Candidate
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import SYSTEM
from hubgate.server.events import store as event_store
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.creation import NewRepo, create
from hubgate.server.hub.repos.model import RepoOwner, RepoType
from hubgate.server.resources import open_hub
from hubgate.server.storage.database import Tx

MAIN = "refs/heads/main"


@dataclass(frozen=True)
class Repo:
    store: Store
    id: str
    token: str

    @property
    def folder(self) -> Path:
        return self.store.folder / "data/repos" / self.id[-2:] / f"{self.id}.git"


def create_repo(store: Store) -> Repo:
    async def work() -> Repo:
        hub = await open_hub(settings_for(store.url, store.folder / "data"))
        try:
            candidate = Candidate("ada", "ada@example.org", PASSWORD)
            ada = await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)
            token, _ = await personal.create(hub.accounts, ada, "test", TokenRole.WRITE, "127.0.0.1")
            owner = RepoOwner("user", ada.id, ada.name)
            repo = await create(hub.repos, ada, owner, NewRepo(RepoType.MODEL, "tiny"), SYSTEM)
            return Repo(store, repo.id, token)
        finally:
            await hub.close()

    return run_blocking(work())


def uploads_until_deaths(hub: HubProcess, contents: Iterator[bytes], deaths: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of new files, until so many web processes of the hub have died."""

    def died() -> int:
        return hub.errors.count("ended with status -9")

    before, started = died(), time.monotonic()
    while died() < before + deaths:
        assert time.monotonic() < started + 500, hub.errors[-2000:]
        content = next(contents)
        yield f"{hashlib.sha256(content).hexdigest()[:16]}.bin", content


@dataclass
class PushLoad:
    """Each client pushes commits to its own branch, each with a tag; another client commits to main over HTTP."""

    repo: Repo
    url: str
    name: str
    clients: int = 2
    acknowledged: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._enough = threading.Condition()
        self._threads = [threading.Thread(target=self._push, args=(number,)) for number in range(self.clients)]
        self._threads.append(threading.Thread(target=self._commit))

    def start(self) -> "PushLoad":
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, count: int, seconds: float = 120.0) -> None:
        with self._enough:
            assert self._enough.wait_for(lambda: len(self.acknowledged) >= count, seconds), "the load made no progress"

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _record(self, *refs: tuple[str, str]) -> None:
        with self._enough:
            self.acknowledged += refs
            self._enough.notify_all()

    def _push(self, number: int) -> None:
        folder = self.repo.store.folder / f"{self.name}-{number}"
        folder.mkdir()
        work = WorkingCopy(folder)
        work.git("init", "-q", "-b", "main")
        branch, count = f"refs/heads/{self.name}-{number}", 0
        while not self._stop.is_set():
            count += 1
            sha = work.commit(f"{number}.txt", f"{count}\n")
            tag = f"refs/tags/{self.name}-{number}-{count}"
            url = repo_url(self.url, "ada/tiny", self.repo.token)
            if run_git(folder, "push", "-q", url, f"HEAD:{branch}", f"HEAD:{tag}").returncode == 0:
                self._record((branch, sha), (tag, sha))

    def _commit(self) -> None:
        headers = {"authorization": f"Bearer {self.repo.token}"}
        count = 0
        with LeanClient(base_url=self.url, headers=headers, timeout=60) as client:
            while not self._stop.is_set():
                count += 1
                try:
                    response = send_commit(client, "ada/tiny", {f"{self.name}.txt": str(count).encode()})
                except httpx.TransportError:
                    self._stop.wait(0.05)
                    continue
                if response.status_code == 200:
                    self._record((MAIN, response.json()["commitOid"]))


def check(repo: Repo, acknowledged: Sequence[tuple[str, str]]) -> None:
    """Check that every change has one event, every ref has the value of its last event, and its objects are on disk."""
    refs, events = run_blocking(_rows(repo))
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1)), "the sequence has a gap"
    expected: dict[str, str | None] = {MAIN: _first(repo)}
    seen = set()
    for _, payload in events[1:]:
        for update in payload["updatedRefs"]:
            assert expected.get(update["ref"]) == update["oldSha"], "a change does not start from the previous one"
            expected[update["ref"]] = update["newSha"]
            seen.add((update["ref"], update["newSha"]))
    assert expected == refs
    assert not set(acknowledged) - seen, "an acknowledged change is missing"
    listed = run_git(repo.folder, "rev-list", "--objects", "--quiet", *sorted(set(refs.values())))
    assert listed.returncode == 0, listed.stderr


def _first(repo: Repo) -> str:
    """The first commit of main."""
    refs, _ = run_blocking(_rows(repo))
    return run_git(repo.folder, "rev-list", "--max-parents=0", refs[MAIN]).stdout.strip()


async def _rows(repo: Repo) -> tuple[dict[str, str], list[tuple[int, dict[str, Any]]]]:
    async def unit(tx: Tx) -> tuple[dict[str, str], list[tuple[int, dict[str, Any]]]]:
        refs = dict(await repo_store.refs(tx, repo.id))
        rows = await event_store.of_repo(tx, repo.id, 0, 1_000_000)
        return refs, [(row["repo_seq"], msgspec.json.decode(bytes(row["body"]))) for row in rows]

    async with opened_database(repo.store.url) as db:
        return await db.read_long(unit)
