"""kill -9 during uploads of chunks: a file that the hub acknowledged is complete, and none is half-visible."""

import random

import httpx
import pytest
from tests.bed.processes import TEST_BUILD, HubProcess, hub_process
from tests.bed.xet import XetClient, whole_file, xorb_of
from tests.faults.conftest import Store
from tests.faults.pushes import create_repo

pytestmark = pytest.mark.faults

FAILPOINTS = (
    "xorb-stored",
    "xorb-recorded",
    "shard-verified",
    "shard-registered",
    "storage.before_commit",
    "storage.after_commit",
)


def signed_in(hub: HubProcess, token: str) -> httpx.Client:
    client = hub.client()
    client.headers["authorization"] = f"Bearer {token}"
    return client


def upload(hub: HubProcess, token: str, path: str, content: bytes) -> bool:
    """Upload and commit a file as clients do; whether the hub acknowledged the commit."""
    xorb = xorb_of(content)
    try:
        with signed_in(hub, token) as ada:
            client = XetClient(ada, "ada/tiny")
            access = client.request_token()
            if access.status_code != 200:
                return False
            client.headers = {"authorization": f"Bearer {access.json()['accessToken']}"}
            return (
                client.send_xorb(xorb).status_code == 200
                and client.send_shard([whole_file(content, xorb)], [xorb]).status_code == 200
                and client.commit(path, content).status_code == 200
            )
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_death_during_uploads_loses_no_acknowledged_file(store: Store, failpoint: str, fault_count: int) -> None:
    """Each web process dies at the second hit of the failpoint, and is replaced."""
    token = create_repo(store).token
    contents = [random.Random(number).randbytes(50_000 + number) for number in range(max(4, fault_count // 2))]
    flags = [*store.flags, "--deliver", "off"]
    with hub_process(store.folder, *flags, program=TEST_BUILD, TEST_FAILPOINTS=f"{failpoint}:2") as hub:
        for number, content in enumerate(contents):
            assert any(upload(hub, token, f"{number}.bin", content) for _ in range(40)), hub.errors[-2000:]
        assert "ended with status -9" in hub.errors
        hub.kill_all()
    with hub_process(store.folder, *flags) as hub, signed_in(hub, token) as ada:
        for number, content in enumerate(contents):
            assert ada.get(f"/ada/tiny/resolve/main/{number}.bin").content == content
    assert store.doctor_failures() == []
