"""The receiver is killed with -9 while a real hub delivers to it: with its retries, circuit breaker and signatures."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.processes import HubProcess, hub_process, hubgate, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_repo, send_commit
from tests.faults.receivers import PATHS, Receiver

pytestmark = pytest.mark.faults

# As many deliveries as a test with a hundred kills causes.
REPOS = 6
FLAGS = ("--egress-allow", "127.0.0.0/8", "--webhook-quota", "1000000")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    (tmp_path / "receiver").mkdir()
    # The hub answers slowly for every unreachable address, so that nobody can map a network with it.
    made = Receiver(tmp_path / "receiver", held=True)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubProcess]:
    (tmp_path / "hub").mkdir()
    with hub_process(tmp_path / "hub", *FLAGS) as started:
        yield started


@pytest.fixture
def ada(hub: HubProcess) -> Iterator[httpx.Client]:
    arguments = ("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin")
    assert hubgate(*arguments, cwd=hub.folder, stdin=b"correct horse battery").returncode == 0
    token = hubgate("admin", "token", "create", "ada", "--role", "write", cwd=hub.folder).stdout.strip()
    with httpx.Client(base_url=hub.url, headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:
        yield client


class Changes:
    """Commits one after another until it is stopped."""

    def __init__(self, ada: httpx.Client) -> None:
        self._ada = ada
        self._stop = threading.Event()
        self.made = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Changes":
        for number in range(REPOS):
            create_repo(self._ada, f"busy{number}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            answer = send_commit(self._ada, f"ada/busy{self.made % REPOS}", {"a.txt": str(self.made).encode()})
            assert answer.status_code == 200, answer.text
            self.made += 1


def test_kill_9_of_the_receiver_loses_no_delivery_of_the_hub(
    receiver: Receiver, ada: httpx.Client, fault_count: int
) -> None:
    chance = random.Random(fault_count)
    receiver.start()
    webhooks = [_webhook(ada, receiver.url + path) for path in PATHS]
    with Changes(ada) as changes:
        # The hub sends deliveries in flight again after 5 s.
        for _ in range(max(1, fault_count // 2)):
            before = receiver.counted("began").total()
            more = chance.randint(1, 12)
            until(lambda: receiver.counted("began").total() >= before + more, 60)
            receiver.kill()
            receiver.start()
    logs: list[dict[str, Any]] = []

    def all_arrived() -> bool:
        logs[:] = [log for webhook in webhooks for log in _logs(ada, webhook)]
        # Each commit, and each repo's creation, to both of them.
        expected = (changes.made + REPOS) * len(PATHS)
        return len(logs) == expected and {log["state"] for log in logs} == {"delivered"}

    until(all_arrived, 300)
    until(lambda: not receiver.ids_that_are("waiting", "running"), 60)
    assert receiver.stop() == 0
    receiver.check({log["id"] for log in logs})


def _webhook(ada: httpx.Client, url: str) -> str:
    asked = {"url": url, "watched": [{"type": "user", "name": "ada"}], "secret": SECRET}
    answer = ada.post("/api/settings/webhooks", json=asked)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["webhook"]["id"])


def _logs(ada: httpx.Client, webhook: str) -> Iterator[dict[str, Any]]:
    url: str | None = f"/api/settings/webhooks/{webhook}/logs?limit=100"
    while url:
        answer = ada.get(url)
        assert answer.status_code == 200, answer.text
        yield from answer.json()
        url = answer.links.get("next", {}).get("url")
