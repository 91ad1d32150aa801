"""A hosted receiver on a hub with all its processes: pushed with git, gets deliveries, survives kills of the hub."""

import os
from pathlib import Path

import httpx
import pytest
from tests.bed.git import repo_url, run_git
from tests.bed.processes import free_port, hub_process, is_alive, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_commit, create_repo
from tests.bed.webhooks import create_webhook
from tests.faults.conftest import Store
from tests.faults.test_tunnels import client_of, token_of_ada

pytestmark = pytest.mark.faults

NAME = "ada/listener"
# A receiver as it would run on a laptop. It also calls the hub.
RECEIVER = """
import os
import httpx
from hubgate.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer()

@app.add_webhook
def train(payload: WebhookPayload) -> dict[str, str]:
    found = httpx.get(f"{os.environ['HUBGATE_ENDPOINT']}/api/models/{payload.repo.name}")
    print("trained", payload.repo.head_sha, found.status_code, flush=True)
    return {"seen": str(payload.repo.head_sha)}

app.launch()
"""
CARD = "---\nsdk: python\n---\n"


@pytest.mark.one_engine
def test_hosted_receiver_gets_deliveries_and_survives_kills(store: Store, fault_count: int) -> None:
    token, port = token_of_ada(store), free_port()
    variables = {"HUBGATE_SPACES_RUNNER": "bubblewrap"}
    with hub_process(store.folder, *store.flags, port=port, **variables) as first, client_of(first, token) as ada:
        create_repo(ada, NAME, "space")
        ada.post(f"/api/spaces/{NAME}/secrets", json={"key": "WEBHOOK_SECRET", "value": SECRET}).raise_for_status()
        push_with_git(store.folder, first.url, token)
        create_repo(ada, "corpus")
        create_webhook(ada, f"{first.url}/hosted/{NAME}/webhooks/train", "user:ada", secret=SECRET)
        # The delivery waits until the receiver runs.
        sha = create_commit(ada, "ada/corpus", {"a.txt": b"first"})
        until_logged(ada, f"trained {sha} 200")
        inside = sandboxed_processes(store.folder)
        assert inside
        first.kill_all()
    until(lambda: not any(map(is_alive, inside)))
    # Each takes seconds, most of them for the start of the hub.
    for number in range(min(fault_count, 100)):
        with hub_process(store.folder, *store.flags, port=port, **variables) as hub, client_of(hub, token) as ada:
            sha = create_commit(ada, "ada/corpus", {"a.txt": b"%d" % number})
            until_logged(ada, f"trained {sha} 200")
            inside = sandboxed_processes(store.folder)
            if number % 2:
                hub.kill_all()
            else:
                assert hub.stop() == 0
        until(lambda: not any(map(is_alive, inside)))
        assert "Traceback" not in hub.errors


def push_with_git(folder: Path, url: str, token: str) -> None:
    clone = folder / "clone"
    address = repo_url(url, f"spaces/{NAME}", token)
    assert run_git(folder, "clone", "--quiet", address, str(clone)).returncode == 0
    (clone / "README.md").write_text(CARD)
    (clone / "app.py").write_text(RECEIVER)
    for arguments in (
        ["add", "."],
        ["commit", "--quiet", "-m", "A receiver"],
        ["push", "--quiet", "origin", "HEAD:main"],
    ):
        done = run_git(clone, *arguments)
        assert done.returncode == 0, done.stderr


def until_logged(client: httpx.Client, text: str) -> None:
    """Follow the log of the app until it has a line."""
    with client.stream("GET", f"/api/spaces/{NAME}/logs/run", timeout=300) as answer:
        for line in answer.iter_lines():
            if text in line:
                return
    raise AssertionError("the log ended")


def sandboxed_processes(folder: Path) -> list[int]:
    """The processes in the control groups of this hub's Spaces."""
    (owner,) = [path for path in (folder / "data" / "spaces" / "owners").iterdir() if path.read_text()][-1:]
    found: set[int] = set()
    for group in Path("/sys/fs/cgroup").rglob(f"{owner.name}.*/cgroup.procs"):
        found.update(map(int, group.read_text().split()))
    assert os.getpid() not in found
    return sorted(found)
