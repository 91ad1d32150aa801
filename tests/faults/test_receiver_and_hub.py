"""The receiver is killed with -9 while a real hub delivers to it: with its retries, circuit breaker and signatures."""

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.lean_http import LeanClient
from tests.bed.processes import HubProcess, hub_process, hubgate, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_repo, send_commit
from tests.faults.receivers import PATHS, Receiver

pytestmark = pytest.mark.faults

# Enough repos for the deliveries of a test with a hundred kills.
REPOS = 6
FLAGS = ("--egress-allow", "127.0.0.0/8", "--webhook-quota", "1000000")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    (tmp_path / "receiver").mkdir()
    # Without the open socket, every kill would cost the delay with which the hub hides unreachable addresses.
    receiver = Receiver(tmp_path / "receiver", keep_socket=True)
    try:
        yield receiver
    finally:
        receiver.close()


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
    with LeanClient(base_url=hub.url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        yield client


class Changes:
    """Commits to the repos in turn, in the background, until the block ends."""

    def __init__(self, ada: httpx.Client) -> None:
        self._ada = ada
        self._stop = threading.Event()
        self.committed = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Changes":
        for number in range(REPOS):
            create_repo(self._ada, f"busy{number}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(120)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            response = send_commit(
                self._ada, f"ada/busy{self.committed % REPOS}", {"a.txt": str(self.committed).encode()}
            )
            assert response.status_code == 200, response.text
            self.committed += 1


def test_kill_9_of_the_receiver_loses_no_delivery_of_the_hub(
    receiver: Receiver, ada: httpx.Client, fault_count: int
) -> None:
    chance = random.Random(fault_count)
    receiver.start()
    webhooks = [_webhook(ada, receiver.url + path) for path in PATHS]
    with Changes(ada) as changes:
        # The hub sends deliveries in flight again after 5 s.
        for _ in range(max(1, fault_count // 2)):
            before = receiver.count("began").total()
            more = chance.randint(1, 12)
            until(lambda: receiver.count("began").total() >= before + more, 120)
            receiver.kill()
            receiver.start()
    logs: list[dict[str, Any]] = []

    def all_delivered() -> bool:
        logs[:] = [log for webhook in webhooks for log in _logs(ada, webhook)]
        # Each commit, and the creation of each repo, is delivered to both webhooks.
        expected = (changes.committed + REPOS) * len(PATHS)
        return len(logs) == expected and {log["state"] for log in logs} == {"delivered"}

    until(all_delivered, 300)
    until(lambda: not receiver.ids_in_state("waiting", "running"))
    assert receiver.stop() == 0
    receiver.check({log["id"] for log in logs})


def _webhook(ada: httpx.Client, url: str) -> str:
    body = {"url": url, "watched": [{"type": "user", "name": "ada"}], "secret": SECRET}
    response = ada.post("/api/settings/webhooks", json=body)
    assert response.status_code == 200, response.text
    return str(response.json()["webhook"]["id"])


def _logs(ada: httpx.Client, webhook: str) -> Iterator[dict[str, Any]]:
    url: str | None = f"/api/settings/webhooks/{webhook}/logs?limit=100"
    while url:
        response = ada.get(url)
        assert response.status_code == 200, response.text
        yield from response.json()
        url = response.links.get("next", {}).get("url")
