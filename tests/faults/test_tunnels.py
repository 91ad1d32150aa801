"""Receivers behind tunnels, with several processes: web workers, the background process, kills and restarts."""

import contextlib
import time

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import settings_for
from tests.bed.lean_http import LeanClient
from tests.bed.processes import TEST_BUILD, HubProcess, free_port, hub_process, until
from tests.bed.receiver_library import SECRET
from tests.bed.repos import create_commit, create_repo
from tests.bed.slow_polls import POLL_SECONDS
from tests.bed.tunnels import SharedReceiver, share_receiver
from tests.bed.webhooks import create_webhook
from tests.faults.conftest import Store
from tests.faults.scenario import pace

from hubgate.receiver.testing import signed_delivery
from hubgate.server.accounts import signup
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.signup import Candidate
from hubgate.server.accounts.tokens import personal
from hubgate.server.resources import open_hub

pytestmark = pytest.mark.faults

WORKERS = ("--workers", "2")
# A link may connect 120 times in ten minutes.
MOST_KILLS = 100


def token_of_ada(store: Store) -> str:
    async def work() -> str:
        hub = await open_hub(settings_for(store.url, store.folder / "data"))
        try:
            candidate = Candidate("ada", "ada@example.org", "")
            ada = await signup.create_by_operator(hub.accounts, candidate, verified=True, operator=False)
            return (await personal.create(hub.accounts, ada, "test", TokenRole.WRITE, "127.0.0.1"))[0]
        finally:
            await hub.close()

    return run_blocking(work())


def client_of(hub: HubProcess, token: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {token}"}
    return LeanClient(base_url=hub.url, headers=headers, timeout=60)


def start_hub(store: Store, port: int) -> contextlib.AbstractContextManager[HubProcess]:
    """A hub with the default pace, except that it retries soon, and soon fans out after a kill."""
    return hub_process(store.folder, *store.flags, *WORKERS, port=port, program=TEST_BUILD, **pace(20, 15, 2))


def commits(shared: SharedReceiver) -> list[str]:
    """The names of the branches' new heads, in the order in which they were received."""
    updates = [payload for payload in shared.payloads if payload.event.scope == "repo.content"]
    return [str(payload.repo.head_sha) for payload in updates if payload.repo is not None]


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_delivery_through_a_tunnel_waits_for_no_poll(
    store: Store, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """Two web workers and the background process: the one with the WebSocket is not the one that delivers."""
    token = token_of_ada(store)
    polls = {POLL_SECONDS: "1000"}
    with (
        hub_process(store.folder, *store.flags, *WORKERS, "--server", server, program=TEST_BUILD, **polls) as hub,
        client_of(hub, token) as ada,
        share_receiver(monkeypatch, hub.url, token) as shared,
    ):
        create_repo(ada, "corpus")
        create_webhook(ada, f"{shared.link}webhooks/train", "user:ada", secret=SECRET)
        # The first one waits for the receiver to connect, and for the background process to start.
        create_commit(ada, "ada/corpus", {"a.txt": b"first"})
        until(lambda: len(commits(shared)) == 1)
        for number in range(5):
            create_commit(ada, "ada/corpus", {"a.txt": b"%d" % number})
            until(lambda count=number + 2: len(commits(shared)) == count)
        # Both workers accept requests to the link, whichever has the WebSocket.
        for _ in range(10):
            delivery = signed_delivery("repo.content.update", secret=SECRET)
            url = f"{shared.link}webhooks/train"
            assert httpx.post(url, headers=delivery.headers, content=delivery.body).status_code == 200
        began = time.monotonic()
        assert hub.stop() == 0
        # The server waits seven seconds for requests in flight.
        assert time.monotonic() - began < 6.5, "an open WebSocket does not delay the stop"
    assert "Traceback" not in hub.errors


def test_link_survives_kills_of_the_hub(store: Store, monkeypatch: pytest.MonkeyPatch, fault_count: int) -> None:
    """The receiver connects again, for the same link, and gets all deliveries."""
    token = token_of_ada(store)
    sent: list[str] = []
    with contextlib.ExitStack() as sharing:
        port = free_port()
        with start_hub(store, port) as first, client_of(first, token) as ada:
            shared = sharing.enter_context(share_receiver(monkeypatch, first.url, token))
            create_repo(ada, "corpus")
            create_webhook(ada, f"{shared.link}webhooks/train", "user:ada", secret=SECRET)
            sent.append(create_commit(ada, "ada/corpus", {"a.txt": b"first"}))
            first.kill_all()
        for number in range(min(fault_count, MOST_KILLS)):
            with start_hub(store, port) as hub, client_of(hub, token) as ada:
                sent.append(create_commit(ada, "ada/corpus", {"a.txt": b"%d" % number}))
                until(lambda: set(sent) <= set(commits(shared)))
                hub.kill_all()
