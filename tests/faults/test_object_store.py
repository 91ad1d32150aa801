"""kill -9 during uploads of large files to an object store: acknowledged files are complete, and none is wrong."""

import hashlib
import random
from collections.abc import Iterator
from itertools import count

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.processes import TEST_BUILD, HubProcess, hub_process
from tests.bed.s3_server import S3Server
from tests.faults.conftest import Store
from tests.faults.pushes import create_repo, uploads_until_deaths
from tests.objects.stores import Place, bucket_place, sha256

pytestmark = pytest.mark.faults

# Each web process dies at that hit.
FAILPOINTS = ("large-file-received:2", "large-file-stored:2", "storage.before_commit:5", "storage.after_commit:5")
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


def kill_during_uploads(
    store: Store, bucket: Place, failpoint: str, contents: Iterator[bytes], rounds: int, deaths: int
) -> None:
    """In each round, so many web processes die, and each time the hub starts another."""
    token = create_repo(store).token
    variables = {**bucket.variables, "TEST_FAILPOINTS": failpoint}
    flags = [*store.flags, "--deliver", "off", "--objects-url", bucket.url]
    acknowledged: dict[str, int] = {}
    for _ in range(rounds):
        with hub_process(store.folder, *flags, program=TEST_BUILD, **variables) as hub:
            for _, content in uploads_until_deaths(hub, contents, deaths):
                if upload(hub, token, content):
                    acknowledged[sha256(content)] = len(content)
            hub.kill_all()
    assert acknowledged
    assert wrong_objects(bucket) == []
    with hub_process(store.folder, *flags, program=TEST_BUILD, **bucket.variables) as hub, hub.client() as client:
        for oid, size in acknowledged.items():
            body = {"operation": "download", "objects": [{"oid": oid, "size": size}]}
            headers = {"authorization": f"Bearer {token}"}
            (found,) = client.post("/ada/tiny.git/info/lfs/objects/batch", json=body, headers=headers).json()["objects"]
            assert sha256(client.get(found["actions"]["download"]["href"]).content) == oid


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_death_during_uploads_loses_no_acknowledged_file(
    store: Store, bucket: Place, failpoint: str, fault_count: int
) -> None:
    contents = (random.Random(number).randbytes(1000 + number) for number in count())
    kill_during_uploads(store, bucket, failpoint, contents, max(1, fault_count // 20), deaths=2)


@pytest.mark.parametrize("failpoint", ["object-part-sent:5", "object-before-join:2"])
def test_death_during_uploads_in_parts_loses_no_acknowledged_file(store: Store, bucket: Place, failpoint: str) -> None:
    """Each upload has three parts, so that a process finishes one and dies in the next."""
    contents = (random.Random(number).randbytes(LARGE) for number in count())
    kill_during_uploads(store, bucket, failpoint, contents, rounds=1, deaths=2)
