"""`hubgate admin objects copy`: from the data folder to a bucket and back, while the hub is serving."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.bed import engines
from tests.bed.processes import hubgate
from tests.bed.repos import send_large
from tests.bed.running_hub import run_hub
from tests.objects.stores import PART, Place, key_of, keys_in, put, read, sha256, with_ada
from tests.objects.test_large_files import CONTENT, FILE, commit_large

from hubgate.server.objects.copying import Copying
from hubgate.server.objects.folder import FolderObjects

pytestmark = pytest.mark.one_engine


class Interrupted(Exception):
    pass


def copy(bucket: Place, *flags: str, to_folder: bool = False, status: int = 0) -> Any:
    """Run the command; what it prints as JSON."""
    source, target = (bucket.url, "folder") if to_folder else ("folder", bucket.url)
    arguments = ("--from", source, "--to", target, "--data-dir", str(bucket.folder), "--json", *flags)
    done = hubgate("admin", "objects", "copy", *arguments, cwd=bucket.folder, **bucket.variables)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


async def test_content_is_copied_there_and_back(bucket: Place, tmp_path: Path) -> None:
    contents = [random.Random(size).randbytes(size) for size in (0, 1, 1000, PART + 3)]
    async with Place(tmp_path).opened() as folder, bucket.opened() as objects:
        keys = sorted([await put(folder, content) for content in contents])
        keys.append(await put(folder, b"a xorb", "xorbs/ab/cd/abcd"))
        total = sum(map(len, contents)) + 6
        assert copy(bucket) == {"copied": 5, "bytes": total, "existing": 0, "damaged": []}
        assert await keys_in(objects) + await keys_in(objects, "xorbs/") == keys
        for content in contents:
            assert await read(objects, key_of(content), 0, len(content)) == content
        assert await keys_in(folder) == keys[:-1], "the source is unchanged"
        assert copy(bucket, "--verify") == {"copied": 0, "bytes": 0, "existing": 5, "damaged": []}
        for key in keys[:2]:
            await folder.delete(key)
        assert copy(bucket, to_folder=True)["copied"] == 2
        assert await keys_in(folder) == keys[:-1]
        assert not list((tmp_path / "lfs/incoming").glob("*"))


async def test_interrupted_copy_continues(bucket: Place, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as folder, bucket.opened() as objects:
        keys = sorted([await put(folder, b"%d" % number) for number in range(20)])
        first = Copying(folder, objects, FolderObjects(tmp_path).temporary)
        seen = 0

        def interrupt(_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == 7:
                raise Interrupted

        with pytest.raises(Interrupted):
            await first.run(interrupt)
        existing = len(await keys_in(objects))
        assert 7 <= existing < 20
        found = copy(bucket)
        assert (found["copied"], found["existing"]) == (20 - existing, existing)
        assert await keys_in(objects) == keys


async def test_damaged_content_is_named_and_not_copied(bucket: Place, tmp_path: Path) -> None:
    async with Place(tmp_path).opened() as folder, bucket.opened() as objects:
        good, bad = await put(folder, b"good"), await put(folder, b"damaged", key_of(b"content"))
        found = copy(bucket, status=1)
        assert (found["copied"], found["damaged"]) == (1, [bad])
        assert await keys_in(objects) == [good]
        # Damage in the target is found by reading it.
        await objects.delete(good)
        await put(objects, b"evil", good)
        await folder.delete(bad)
        assert copy(bucket)["damaged"] == []
        assert copy(bucket, "--verify", status=1)["damaged"] == [good]


def test_running_hub_moves_to_a_bucket_and_back(engine: engines.Engine, bucket: Place, tmp_path: Path) -> None:
    url = engine.fresh_url()

    def settings(**more: str) -> Any:
        return engines.settings_for(url, tmp_path, **more)

    with run_hub(settings()) as hub, with_ada(hub) as ada:
        commit_large(ada)
        token = ada.headers["authorization"]
    with (
        run_hub(settings(objects_former_url="folder", **bucket.flags)) as hub,
        hub.client(headers={"authorization": token}, trust_env=False, follow_redirects=True) as ada,
    ):
        assert ada.get(FILE).content == CONTENT, "read from the folder"
        new = b"uploaded during the move"
        send_large(ada, "ada/tiny", new)
        assert copy(bucket)["copied"] == 1
        assert len(ada.get(FILE).history) == 1, "now redirected to the bucket"
    for file in (tmp_path / "lfs").glob("??/??/*"):
        file.unlink()
    with (
        run_hub(settings(**bucket.flags)) as hub,
        hub.client(headers={"authorization": token}, trust_env=False, follow_redirects=True) as ada,
    ):
        assert ada.get(FILE).content == CONTENT
    with (
        run_hub(settings(objects_former_url=bucket.url)) as hub,
        hub.client(headers={"authorization": token}, trust_env=False, follow_redirects=True) as ada,
    ):
        assert ada.get(FILE).content == CONTENT, "read from the bucket"
        assert copy(bucket, to_folder=True)["copied"] == 2
    with (
        run_hub(settings()) as hub,
        hub.client(headers={"authorization": token}, trust_env=False) as ada,
    ):
        assert (ada.get(FILE).status_code, ada.get(FILE).content) == (200, CONTENT)
        assert (tmp_path / "lfs" / sha256(new)[:2] / sha256(new)[2:4] / sha256(new)).read_bytes() == new


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--from", "folder", "--to", "folder"), "are the same store"),
        (("--from", "folder", "--to", "https://x"), "--to: expected folder or an address such as s3://bucket/prefix"),
        (("--from", "", "--to", "folder"), "--from must not be empty"),
        (("--from", "folder", "--to", "s3://bucket"), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_bad_usage_is_named(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    done = hubgate("admin", "objects", "copy", *arguments, cwd=tmp_path, **variables)
    assert done.returncode == 1
    assert says in done.stderr


def test_store_that_is_away_ends_the_copy_with_a_hint(tmp_path: Path) -> None:
    variables = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    place = Place(tmp_path, "s3://bucket", variables)
    assert "Run the command again to continue." in copy(place, status=1)
