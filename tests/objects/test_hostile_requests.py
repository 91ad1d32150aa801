"""Requests for large files that meet the limits of a store: conditions, images in pages, slow readers, a store that
stops answering, a full disk.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed import engines
from tests.bed.repos import send_commit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.small_disk import small_disk
from tests.objects.misbehaving import run_far_end
from tests.objects.stores import MIB, PART, Place, sha256, with_ada
from tests.objects.test_large_files import CONTENT, FILE, commit_large, hub_on

from hubgate.server import failpoint
from hubgate.server.hub.context import Limits
from hubgate.server.hub.lfs import store
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.web.files import large_files

pytestmark = pytest.mark.one_engine

BATCH = "/ada/tiny.git/info/lfs/objects/batch"


@pytest.fixture
def hub_on_bucket(engine: engines.Engine, bucket: Place, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(engines.settings_for(engine.fresh_url(), tmp_path, **bucket.flags)) as hub:
        yield hub


def test_older_content_is_not_taken_for_unmodified(hub_on_bucket: RunningHub) -> None:
    """`curl -z` and `wget -N`: the time of an object says nothing about when a file of a repo was changed."""
    with with_ada(hub_on_bucket) as ada, hub_on_bucket.client(trust_env=False, follow_redirects=True) as anyone:
        commit_large(ada)
        now = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 60))
        got = anyone.get(FILE, headers={"if-modified-since": now})
        assert (got.status_code, got.content == CONTENT) == (200, True)
        old = "Thu, 01 Jan 2015 00:00:00 GMT"
        assert anyone.get(FILE, headers={"if-unmodified-since": old}).status_code == 200


def test_image_in_a_page_comes_from_the_hub(hub_on_bucket: RunningHub) -> None:
    """The policy of our pages allows images from their own origin only, and browsers apply it to redirects too."""
    with with_ada(hub_on_bucket) as ada:
        commit_large(ada, path="plot.png")
        image = "/ada/tiny/resolve/main/plot.png"
        got = ada.get(image, headers={"accept": "image/avif,image/webp,*/*;q=0.8"})
        assert (got.status_code, got.content == CONTENT) == (200, True)
        assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert ada.get(image).status_code == 302


def test_store_that_is_away_is_not_asked_for_every_file(
    engine: engines.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for many files that failed leaves no requests to the store behind."""
    oids = [sha256(b"%d" % number) for number in range(100)]

    async def link(hub: Hub) -> None:
        row = await hub.db.one("SELECT id FROM repos", {})
        assert row is not None
        repo_id = row["id"]

        async def unit(tx: Tx) -> None:
            for oid in oids:
                await store.link(tx, repo_id, oid, 1, None, 0)

        await hub.db.write(unit)

    with run_far_end(lambda _: None) as far_end:
        hub = hub_on(far_end, engine, tmp_path, monkeypatch)
        hub.start()
        try:
            with with_ada(hub) as ada:
                hub.call(link)
                objects = [{"oid": oid, "size": 1} for oid in oids]
                for operation in ("download", "upload"):
                    before = len(far_end.requests)
                    answer = ada.post(BATCH, json={"operation": operation, "objects": objects})
                    assert answer.status_code == 503
                    time.sleep(1.5)
                    assert len(far_end.requests) - before <= large_files.CONCURRENT_LOOKUPS
        finally:
            hub.stop()


def test_slow_readers_leave_connections_to_the_store(engine: engines.Engine, bucket: Place, tmp_path: Path) -> None:
    content = random.Random(6).randbytes(40 * MIB)
    settings = engines.settings_for(engine.fresh_url(), tmp_path, objects_links="off", **bucket.flags)
    limits = Limits(store_downloads=3, store_downloads_per_caller=2, store_download_wait_seconds=0.2)
    with run_hub(settings, limits=limits) as hub, with_ada(hub) as ada, hub.client(trust_env=False) as anyone:
        commit_large(ada, content)
        with anyone.stream("GET", FILE) as one, anyone.stream("GET", FILE) as two:
            assert (one.status_code, two.status_code) == (200, 200)
            refused = anyone.get(FILE, headers={"range": "bytes=0-9"})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
            assert anyone.head(FILE).status_code == 200
            assert ada.get(FILE, headers={"range": "bytes=0-9"}).content == content[:10]
        assert httpx.get(hub.url + FILE, trust_env=False).content == content


def upload_parts(ada: httpx.Client, content: bytes) -> tuple[str, dict[str, Any]]:
    """Send a file in parts; the address and body of the request that joins them."""
    body = {
        "operation": "upload",
        "transfers": ["multipart"],
        "objects": [{"oid": sha256(content), "size": len(content)}],
    }
    (found,) = ada.post(BATCH, json=body).json()["objects"]
    action, etags = found["actions"]["upload"], []
    for number, at in enumerate(range(0, len(content), PART), 1):
        sent = httpx.put(action["header"][f"{number:05d}"], content=content[at : at + PART], trust_env=False)
        if sent.status_code != 200:
            return str(sent.status_code), sent.json()
        etags.append({"partNumber": number, "etag": sent.headers["etag"]})
    return action["href"], {"oid": sha256(content), "parts": etags}


@pytest.mark.limits(part_bytes=PART, multipart_threshold=PART)
def test_parts_are_kept_until_the_file_is_linked(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    content = random.Random(7).randbytes(PART + 17)
    path = hub.settings.database_url.removeprefix("sqlite:///")
    locks = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with with_ada(hub) as ada, closing(locks) as stranger:
        href, body = upload_parts(ada, content)
        # The file is stored, and another transaction locks the database before the file is linked.
        with monkeypatch.context() as arming:
            arming.setitem(failpoint.armed, "large-file-stored", lambda: stranger.execute("BEGIN IMMEDIATE"))
            assert httpx.post(href, json=body, trust_env=False, timeout=60).status_code == 503
        stranger.execute("ROLLBACK")
        assert [httpx.post(href, json=body, trust_env=False).status_code for _ in range(2)] == [200, 200]
        assert not list((hub.settings.data_dir / "lfs/parts").glob("*"))
        commit_large(ada, content)
        assert ada.get(FILE).content == content


@pytest.mark.limits(part_bytes=PART, multipart_threshold=PART)
def test_repeated_requests_join_the_parts_once(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each join writes a copy of the whole file, so repeated requests would fill the disk."""
    joined: list[None] = []
    monkeypatch.setitem(failpoint.armed, "large-file-received", lambda: joined.append(None))
    with with_ada(hub) as ada, ThreadPoolExecutor(4) as threads:
        href, body = upload_parts(ada, random.Random(7).randbytes(PART + 17))
        sent = [threads.submit(httpx.post, href, json=body, trust_env=False, timeout=60) for _ in range(4)]
        assert [one.result().status_code for one in sent] == [200] * 4
        assert len(joined) == 1


@pytest.mark.limits(part_bytes=PART, multipart_threshold=PART)
def test_full_disk_is_named_and_nothing_is_left(hub: RunningHub) -> None:
    content = random.Random(7).randbytes(PART + 17)
    incoming = hub.settings.data_dir / "lfs/incoming"
    with small_disk(hub.settings.data_dir / "lfs") as disk, with_ada(hub) as ada:
        disk.leave(2 * MIB)
        status, answer = upload_parts(ada, content)
        assert (status, answer["message"]) == ("503", "The storage of large files is full.")
        disk.clear()
        href, body = upload_parts(ada, content)
        disk.leave(2 * MIB)
        assert httpx.post(href, json=body, trust_env=False).status_code == 503
        disk.leave(0)
        assert send_commit(ada, "ada/tiny", {"model.bin": CONTENT}).status_code == 503
        assert not list(incoming.glob("*"))
        disk.clear()
        assert httpx.post(href, json=body, trust_env=False).status_code == 200
