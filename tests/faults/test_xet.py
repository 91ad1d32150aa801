"""kill -9 during uploads of chunks: a file that the hub acknowledged is complete, and none is half-visible."""

import random
from itertools import count

import httpx
import pytest
from tests.bed.processes import TEST_BUILD, HubProcess, hub_process
from tests.bed.xet import XetClient, whole_file, xorb_of
from tests.faults.conftest import Store
from tests.faults.pushes import create_repo, uploads_until_deaths

pytestmark = pytest.mark.faults

# Each web process dies at that hit. An upload writes to the database several times, and a process that dies before
# the last of them never acknowledges one.
FAILPOINTS = (
    "xorb-stored:2",
    "xorb-recorded:2",
    "shard-verified:2",
    "shard-registered:2",
    "storage.before_commit:9",
    "storage.after_commit:9",
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
    """In each round, two web processes die, and each time the hub starts another."""
    token = create_repo(store).token
    contents = (random.Random(number).randbytes(50_000 + number) for number in count())
    acknowledged: dict[str, bytes] = {}
    flags = [*store.flags, "--deliver", "off"]
    for _ in range(max(1, fault_count // 20)):
        with hub_process(store.folder, *flags, program=TEST_BUILD, TEST_FAILPOINTS=failpoint) as hub:
            sent = uploads_until_deaths(hub, contents, 2)
            acknowledged |= {path: content for path, content in sent if upload(hub, token, path, content)}
            hub.kill_all()
    assert acknowledged
    with hub_process(store.folder, *flags) as hub, signed_in(hub, token) as ada:
        for path, content in acknowledged.items():
            assert ada.get(f"/ada/tiny/resolve/main/{path}").content == content
    assert store.doctor_failures() == []
