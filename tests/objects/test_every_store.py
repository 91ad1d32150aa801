"""What every store of large content must do."""

import asyncio
import random

import httpx
import pytest
from tests.objects.stores import MIB, PART, Place, key_of, keys_in, put, read, sha256, written_file

from hubgate.server.objects.model import ObjectMissing, StoreUnavailable, check_key

CONTENT = bytes(range(256)) * 4


async def test_content_is_stored_read_and_deleted(place: Place) -> None:
    async with place.opened() as objects:
        key = key_of(CONTENT)
        assert await objects.size(key) is None
        assert await objects.put(key, CONTENT, sha256(CONTENT)) is True
        assert await objects.size(key) == len(CONTENT)
        assert await read(objects, key, 0, len(CONTENT)) == CONTENT
        assert await read(objects, key, 100, 101) == CONTENT[100:101]
        assert await read(objects, key, 1000, 1024) == CONTENT[1000:]
        await objects.delete(key)
        await objects.delete(key)
        assert await objects.size(key) is None
        with pytest.raises(ObjectMissing):
            await read(objects, key, 0, 1)


async def test_empty_content_is_stored(place: Place) -> None:
    async with place.opened() as objects:
        key = await put(objects, b"")
        assert await objects.size(key) == 0
        assert await read(objects, key, 0, 0) == b""


@pytest.mark.parametrize("size", [PART, PART + 1, 2 * PART + MIB + 7])
async def test_file_of_any_size_is_stored(place: Place, size: int) -> None:
    content = random.Random(size).randbytes(size)
    async with place.opened() as objects:
        path = written_file(place.folder, content)
        assert await objects.put(key_of(content), path, sha256(content)) is True
        assert await objects.size(key_of(content)) == size
        assert sha256(await read(objects, key_of(content), 0, size)) == sha256(content)
        assert await read(objects, key_of(content), PART - 3, PART) == content[PART - 3 : PART]
        again = written_file(place.folder, content)
        assert await objects.put(key_of(content), again, sha256(content)) is False


async def test_concurrent_uploads_of_the_same_content_store_it_once(place: Place) -> None:
    content = random.Random(1).randbytes(PART + MIB)
    async with place.opened() as objects:
        paths = [written_file(place.folder, content) for _ in range(4)]
        await asyncio.gather(*(objects.put(key_of(content), path, sha256(content)) for path in paths))
        assert await keys_in(objects) == [key_of(content)]
        assert sha256(await read(objects, key_of(content), 0, len(content))) == sha256(content)


async def test_damaged_content_is_replaced(place: Place) -> None:
    async with place.opened() as objects:
        key = await put(objects, b"too short", key_of(CONTENT))
        assert await objects.size(key) != len(CONTENT)
        await objects.put(key, CONTENT, sha256(CONTENT))
        assert await read(objects, key, 0, len(CONTENT)) == CONTENT


async def test_missing_end_of_content_is_an_error(place: Place) -> None:
    async with place.opened(retry_seconds=0) as objects:
        key = await put(objects, CONTENT)
        with pytest.raises(StoreUnavailable):
            await read(objects, key, 0, len(CONTENT) + 1)


async def test_list_is_ordered_and_starts_anywhere(place: Place) -> None:
    async with place.opened() as objects:
        keys = sorted([await put(objects, b"%d" % number) for number in range(30)])
        other = await put(objects, b"other", "xorbs/ab/cd/abcd")
        assert await keys_in(objects) == keys
        assert await keys_in(objects, after=keys[9]) == keys[10:]
        assert await keys_in(objects, after=keys[-1]) == []
        assert await keys_in(objects, "xorbs/") == [other]
        assert await keys_in(objects, "none/") == []
        assert [item.size async for item in objects.list("lfs/")] == [await objects.size(key) for key in keys]


async def test_list_has_no_uploads_in_progress(place: Place) -> None:
    async with place.opened() as objects:
        key = await put(objects, CONTENT)
        written_file(place.folder, b"in progress")
        assert await keys_in(objects) == [key]


async def test_file_or_link_leads_to_the_content(place: Place) -> None:
    async with place.opened() as objects, httpx.AsyncClient(trust_env=False) as anyone:
        key = await put(objects, CONTENT)
        path = await objects.local_file(key)
        headers = {"content-type": "text/plain", "content-disposition": 'inline; filename="a b.txt"'}
        link = await objects.link(key, 60, headers)
        assert (path is None, link is not None) == (place.is_remote, place.is_remote)
        if path is not None:
            assert path.read_bytes() == CONTENT
        if link is not None:
            found = await anyone.get(link, headers={"range": "bytes=1-3"})
            assert (found.status_code, found.content) == (206, CONTENT[1:4])
            assert found.headers["content-type"].startswith("text/plain")
            assert (await anyone.get(link.replace(key, key_of(b"another")))).status_code in (403, 404)
            assert (await anyone.put(link, content=b"x")).status_code == 403


async def test_store_at_the_address_of_the_hub_gets_no_links(bucket: Place) -> None:
    """A proxy that serves both at one address must not serve files without the hub's headers (attack O60)."""
    async with bucket.opened(hub_url=bucket.variables["AWS_ENDPOINT_URL"]) as objects:
        assert await objects.link(key_of(CONTENT), 60, {}) is None
    async with bucket.opened(hub_url="http://hub.example", public_endpoint="http://hub.example") as objects:
        assert await objects.link(key_of(CONTENT), 60, {}) is None
    async with bucket.opened(hub_url="http://hub.example", public_endpoint="http://s3.example") as objects:
        link = await objects.link(key_of(CONTENT), 60, {}) or ""
        assert link.startswith("http://s3.example/hub-tests/")


async def test_unfinished_uploads_are_deleted(place: Place) -> None:
    async with place.opened() as objects:
        assert await objects.delete_unfinished(0) == 0


@pytest.mark.parametrize(
    "key", ["", "lfs", "/lfs/x", "lfs/../x", "lfs//x", "lfs/.x", "lfs/x/", "LFS/x", "lfs/x\n", "x" * 400]
)
def test_key_that_leads_elsewhere_is_rejected(key: str) -> None:
    with pytest.raises(ValueError):
        check_key(key)
