"""Large files over HTTP, on every engine and every kind of store: uploads, downloads, deletion, and failures."""

import random
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.bed import engines
from tests.bed.repos import create_commit, create_repo, send_large, send_lines
from tests.bed.running_hub import RunningHub, run_hub
from tests.objects.misbehaving import FarEnd, error, response, run_far_end
from tests.objects.stores import MIB, PART, Place, key_of, sha256, with_ada

from hubgate.server.hub.context import Limits
from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.resources import Hub

CONTENT = random.Random(5).randbytes(100_000)
FILE = "/ada/tiny/resolve/main/folder/data.html"


def commit_large(ada: httpx.Client, content: bytes = CONTENT, path: str = "folder/data.html") -> str:
    """Upload a large file and commit it; its SHA-256."""
    oid = send_large(ada, "ada/tiny", content)
    line = {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}
    response = send_lines(ada, "ada/tiny", ("lfsFile", line))
    assert response.status_code == 200, response.text
    return oid


def tidy(hub: RunningHub) -> None:
    async def work(opened: Hub) -> None:
        housekeeping = Housekeeping(opened.repos)
        while await housekeeping.step():
            continue

    hub.call(work)


def size_in_store(hub: RunningHub, content: bytes) -> int | None:
    async def work(opened: Hub) -> int | None:
        return await opened.objects.size(key_of(content))

    return hub.call(work)


def test_file_is_uploaded_and_downloaded(hub_on_store: RunningHub, place: Place) -> None:
    with with_ada(hub_on_store) as ada, hub_on_store.client(trust_env=False, follow_redirects=True) as anyone:
        oid = commit_large(ada)
        head = anyone.head(FILE)
        assert (head.status_code, head.headers["etag"], head.headers["content-length"]) == (200, f'"{oid}"', "100000")
        got = anyone.get(FILE)
        assert (got.status_code, got.content == CONTENT) == (200, True)
        assert got.headers["content-type"].startswith("text/plain"), "never as a page"
        part = anyone.get(FILE, headers={"range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, CONTENT[5:10])
        assert part.headers["content-range"] == "bytes 5-9/100000"
        is_redirect = anyone.get(FILE, follow_redirects=False).status_code == 302
        assert is_redirect == place.is_remote
        assert not list((hub_on_store.settings.data_dir / "lfs").glob("incoming/*"))
        assert place.is_remote != any((hub_on_store.settings.data_dir / "lfs").glob("??/??/*"))


@pytest.mark.one_engine
def test_redirect_carries_what_clients_need(engine: engines.Engine, bucket: Place, tmp_path: Path) -> None:
    settings = engines.settings_for(engine.fresh_url(), tmp_path, **bucket.flags)
    with run_hub(settings) as hub, with_ada(hub) as ada:
        oid = commit_large(ada)
        got = ada.get(FILE, headers={"range": "bytes=0-0"})
        assert (got.status_code, got.content) == (302, b"")
        assert (got.headers["x-linked-etag"], got.headers["x-linked-size"]) == (f'"{oid}"', "100000")
        assert got.headers["x-repo-commit"]
        assert got.headers["cache-control"] == "no-store"
        link = got.headers["location"]
        assert urlsplit(link).netloc == urlsplit(bucket.variables["AWS_ENDPOINT_URL"]).netloc
        found = httpx.get(link, trust_env=False)
        assert found.content == CONTENT
        assert "data.html" in found.headers["content-disposition"]
        # The store has other entity tags, so conditions are checked by the hub.
        same = ada.get(FILE, headers={"range": "bytes=3-4", "if-range": f'"{oid}"'})
        assert (same.status_code, same.content) == (206, CONTENT[3:5])
        assert ada.get(FILE, headers={"if-none-match": f'"{oid}"'}).status_code == 304


@pytest.mark.one_engine
def test_empty_file_is_sent_by_the_hub(hub_on_store: RunningHub) -> None:
    with with_ada(hub_on_store) as ada:
        commit_large(ada, b"")
        got = ada.get(FILE, headers={"range": "bytes=0-0"})
        assert (got.status_code, got.headers["content-range"], got.content) == (200, "bytes */0", b"")
        assert (ada.get(FILE).status_code, ada.get(FILE).content) == (200, b"")


@pytest.mark.one_engine
def test_git_lfs_gets_links_of_the_store(hub_on_store: RunningHub, place: Place) -> None:
    with with_ada(hub_on_store) as ada:
        oid = commit_large(ada)
        body = {"operation": "download", "objects": [{"oid": oid, "size": len(CONTENT)}]}
        (found,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=body).json()["objects"]
        href = found["actions"]["download"]["href"]
        assert href.startswith(hub_on_store.url) != place.is_remote
        assert httpx.get(href, trust_env=False).content == CONTENT


@pytest.mark.one_engine
def test_downloads_can_pass_through_the_hub(engine: engines.Engine, bucket: Place, tmp_path: Path) -> None:
    settings = engines.settings_for(engine.fresh_url(), tmp_path, objects_links="off", **bucket.flags)
    with run_hub(settings) as hub, with_ada(hub) as ada:
        content = random.Random(6).randbytes(2 * MIB + 1)
        oid = commit_large(ada, content)
        got = ada.get(FILE)
        assert (got.status_code, got.headers["etag"], got.content == content) == (200, f'"{oid}"', True)
        part = ada.get(FILE, headers={"range": "bytes=-5"})
        assert (part.status_code, part.content) == (206, content[-5:])
        assert ada.get(FILE, headers={"range": "bytes=9999999-"}).status_code == 416


@pytest.mark.one_engine
@pytest.mark.limits(part_bytes=PART, multipart_threshold=PART, store_single_bytes=PART, store_part_bytes=PART)
def test_parts_of_a_client_are_joined_in_the_store(hub_on_store: RunningHub) -> None:
    content = random.Random(7).randbytes(2 * PART + 17)
    with with_ada(hub_on_store) as ada, hub_on_store.client(trust_env=False, follow_redirects=True) as anyone:
        oid = sha256(content)
        body = {"operation": "upload", "transfers": ["multipart"], "objects": [{"oid": oid, "size": len(content)}]}
        (found,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=body).json()["objects"]
        action = found["actions"]["upload"]
        assert action["header"]["chunk_size"] == str(PART)
        etags = []
        for number in (1, 2, 3):
            part = content[(number - 1) * PART : number * PART]
            sent = anyone.put(action["header"][f"{number:05d}"], content=part)
            etags.append({"partNumber": number, "etag": sent.headers["etag"]})
        assert anyone.post(action["href"], json={"oid": oid, "parts": etags}).status_code == 200
        assert size_in_store(hub_on_store, content) == len(content)
        commit_large(ada, content)
        assert anyone.get(FILE).content == content
        assert not list((hub_on_store.settings.data_dir / "lfs/parts").glob("*"))


@pytest.mark.limits(part_bytes=PART, multipart_threshold=PART)
def test_two_hubs_share_a_store(engine: engines.Engine, place: Place, tmp_path: Path, limits: Limits) -> None:
    """Two hubs on one database, one store and one data folder: any of them answers any request."""
    content, url = random.Random(8).randbytes(PART + 17), engine.fresh_url()
    settings = engines.settings_for(url, tmp_path, **place.flags)
    with run_hub(settings, limits=limits) as one, run_hub(settings, limits=limits) as two, with_ada(one) as ada:
        oid = sha256(content)
        body = {"operation": "upload", "transfers": ["multipart"], "objects": [{"oid": oid, "size": len(content)}]}
        (found,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=body).json()["objects"]
        action = found["actions"]["upload"]
        etags = []
        for number, hub in ((1, one), (2, two)):
            href = action["header"][f"{number:05d}"].replace(one.url, hub.url)
            sent = httpx.put(href, content=content[(number - 1) * PART : number * PART], trust_env=False)
            etags.append({"partNumber": number, "etag": sent.headers["etag"]})
        whole = action["href"].replace(one.url, two.url)
        assert httpx.post(whole, json={"oid": oid, "parts": etags}, trust_env=False).status_code == 200
        commit_large(ada, content)
        for hub in (one, two):
            assert httpx.get(hub.url + FILE, trust_env=False, follow_redirects=True).content == content


def test_large_file_inside_a_commit_is_stored(hub_on_store: RunningHub) -> None:
    with with_ada(hub_on_store) as ada, hub_on_store.client(trust_env=False, follow_redirects=True) as anyone:
        create_commit(ada, "ada/tiny", {"model.bin": CONTENT})
        assert size_in_store(hub_on_store, CONTENT) == len(CONTENT)
        assert anyone.get("/ada/tiny/resolve/main/model.bin").content == CONTENT


@pytest.mark.one_engine
def test_wrong_content_never_reaches_the_store(hub_on_store: RunningHub) -> None:
    with with_ada(hub_on_store) as ada:
        body = {"operation": "upload", "objects": [{"oid": sha256(CONTENT), "size": len(CONTENT)}]}
        (found,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=body).json()["objects"]
        href = found["actions"]["upload"]["href"]
        for wrong in (CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"x"):
            assert httpx.put(href, content=wrong, trust_env=False).status_code == 422
        assert size_in_store(hub_on_store, CONTENT) is None
        assert not list((hub_on_store.settings.data_dir / "lfs").glob("incoming/*"))


def test_unused_file_is_deleted_after_a_day(hub_on_store: RunningHub) -> None:
    with with_ada(hub_on_store) as ada:
        create_repo(ada, "other")
        unused, used = b"unused", b"used elsewhere"
        for content in (unused, used):
            send_large(ada, "ada/tiny", content)
        send_large(ada, "ada/other", used)
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        tidy(hub_on_store)
        hub_on_store.clock.advance(24 * 3600 - 1)
        tidy(hub_on_store)
        assert size_in_store(hub_on_store, unused) == len(unused)
        hub_on_store.clock.advance(1)
        tidy(hub_on_store)
        assert size_in_store(hub_on_store, unused) is None
        assert size_in_store(hub_on_store, used) == len(used)
        send_large(ada, "ada/other", unused)
        assert size_in_store(hub_on_store, unused) == len(unused)


def hub_on(far_end: FarEnd, engine: engines.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunningHub:
    place = far_end.place(tmp_path)
    for name, value in place.variables.items():
        monkeypatch.setenv(name, value)
    settings = engines.settings_for(engine.fresh_url(), tmp_path, **place.flags)
    return RunningHub(settings, limits=Limits(store_silence_seconds=0.5, store_retry_seconds=0.0))


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "does not respond"),
        (error(503, "SlowDown"), "does not respond"),
        (error(507, "InsufficientStorage"), "is full"),
        (error(403, "AccessDenied"), "rejects the hub's requests"),
    ],
    ids=["silent", "busy", "full", "forbidden"],
)
def test_failure_of_the_store_is_named_and_nothing_is_stored(
    engine: engines.Engine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: bytes | None,
    message: str,
) -> None:
    with run_far_end(lambda request: response(404) if request.method == "HEAD" else answer) as far_end:
        hub = hub_on(far_end, engine, tmp_path, monkeypatch)
        hub.start()
        try:
            with with_ada(hub) as ada:
                body = {"operation": "upload", "objects": [{"oid": sha256(CONTENT), "size": len(CONTENT)}]}
                (found,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=body).json()["objects"]
                sent = httpx.put(found["actions"]["upload"]["href"], content=CONTENT, trust_env=False)
                assert (sent.status_code, message in sent.json()["message"]) == (503, True)
                assert sent.headers["retry-after"]
                verify = ada.post(found["actions"]["verify"]["href"], json={"oid": sha256(CONTENT), "size": 100_000})
                assert verify.status_code == 404
                assert not list((tmp_path / "lfs").glob("incoming/*"))
                # Everything else works without the store.
                create_commit(ada, "ada/tiny", {"a.txt": b"text"})
                assert ada.get("/ada/tiny/resolve/main/a.txt").text == "text"
                tidy(hub)
            assert "As the test says" in hub.log or answer is None
        finally:
            hub.stop()
