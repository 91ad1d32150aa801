"""kill -9 during uploads of large files to an object store: acknowledged files are complete, and none is wrong."""

import hashlib
import random

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.processes import TEST_BUILD, HubProcess, hub_process
from tests.bed.s3_server import S3Server
from tests.faults.conftest import Store
from tests.faults.pushes import create_repo
from tests.objects.stores import Place, bucket_place, sha256

pytestmark = pytest.mark.faults

FAILPOINTS = ("large-file-received", "large-file-stored", "storage.before_commit", "storage.after_commit")
# Larger than what is sent to the store in one piece.
LARGE = 66 * 1024 * 1024


@pytest.fixture
def bucket(s3_server: S3Server, store: Store) -> Place:
    return bucket_place(s3_server, store.folder / "data")


def upload(hub: HubProcess, token: str, content: bytes) -> bool:
    """Upload a file as clients do; whether the hub acknowledged it."""
    oid = sha256(content)
    body = {"operation": "upload", "objects": [{"oid": oid, "size": len(content)}]}
    try:
        with hub.client() as client:
            address = "/ada/tiny.git/info/lfs/objects/batch"
            answer = client.post(address, json=body, headers={"authorization": f"Bearer {token}"})
            if answer.status_code != 200:
                return False
            (found,) = answer.json()["objects"]
            actions = found.get("actions")
            return actions is None or client.put(actions["upload"]["href"], content=content).status_code == 200
    except httpx.TransportError:
        return False


def wrong_objects(bucket: Place) -> list[str]:
    """The keys of objects whose content does not match their name."""

    async def find() -> list[str]:
        wrong = []
        async with bucket.opened() as objects:
            async for item in objects.list("lfs/"):
                digest = hashlib.sha256()
                async for chunk in objects.get(item.key, 0, item.size):
                    digest.update(chunk)
                if not item.key.endswith(digest.hexdigest()):
                    wrong.append(item.key)
        return wrong

    return run_blocking(find())


def kill_during_uploads(store: Store, bucket: Place, failpoint: str, contents: list[bytes]) -> None:
    """Each web process dies at that hit of the failpoint, and is replaced."""
    token = create_repo(store).token
    variables = {**bucket.variables, "TEST_FAILPOINTS": failpoint}
    flags = [*store.flags, "--deliver", "off", "--objects-url", bucket.url]
    with hub_process(store.folder, *flags, program=TEST_BUILD, **variables) as hub:
        for content in contents:
            assert any(upload(hub, token, content) for _ in range(20)), hub.errors[-2000:]
        assert "ended with status -9" in hub.errors
        hub.kill_all()
    assert wrong_objects(bucket) == []
    with hub_process(store.folder, *flags, program=TEST_BUILD, **bucket.variables) as hub, hub.client() as client:
        for content in contents:
            body = {"operation": "download", "objects": [{"oid": sha256(content), "size": len(content)}]}
            headers = {"authorization": f"Bearer {token}"}
            (found,) = client.post("/ada/tiny.git/info/lfs/objects/batch", json=body, headers=headers).json()["objects"]
            got = client.get(found["actions"]["download"]["href"])
            assert sha256(got.content) == sha256(content)


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_death_during_uploads_loses_no_acknowledged_file(
    store: Store, bucket: Place, failpoint: str, fault_count: int
) -> None:
    contents = [random.Random(number).randbytes(1000 + number) for number in range(max(4, fault_count))]
    kill_during_uploads(store, bucket, f"{failpoint}:2", contents)


@pytest.mark.parametrize("failpoint", ["object-part-sent:5", "object-before-join:2"])
def test_death_during_uploads_in_parts_loses_no_acknowledged_file(store: Store, bucket: Place, failpoint: str) -> None:
    """Each upload has three parts, so that a process finishes one and dies in the next."""
    contents = [random.Random(number).randbytes(LARGE) for number in range(3)]
    kill_during_uploads(store, bucket, failpoint, contents)
