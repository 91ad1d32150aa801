"""Files in chunks, on every engine and every kind of store: uploads, downloads with links of the store, deletion."""

import random
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.bed.engines import Engine
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, xorb_of
from tests.objects.misbehaving import StoreRequest, error, response, run_far_end
from tests.objects.stores import Place, with_ada
from tests.objects.test_large_files import hub_on, tidy

from hubgate.server.clock import DAY, SECOND
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.resources import Hub

CONTENT = random.Random(9).randbytes(300_000)


def xorbs_in_store(hub: RunningHub) -> int:
    async def work(opened: Hub) -> int:
        return len([item async for item in opened.objects.list("xorbs/")])

    return hub.call(work)


def test_file_is_uploaded_and_downloaded_in_chunks(hub_on_store: RunningHub, place: Place) -> None:
    with with_ada(hub_on_store) as ada, hub_on_store.client(trust_env=False) as anyone:
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        assert client.commit("w.bin", CONTENT).status_code == 200
        assert client.download(file, "v2") == CONTENT
        assert client.download(file, "v1", (100_000, 250_000)) == CONTENT[100_000:250_000]
        # Composed by the hub for everybody else, also if the chunks are in an object store.
        got = anyone.get("/ada/tiny/resolve/main/w.bin")
        assert (got.status_code, got.content == CONTENT) == (200, True)
        part = anyone.get("/ada/tiny/resolve/main/w.bin", headers={"range": "bytes=70000-200000"})
        assert (part.status_code, part.content == CONTENT[70_000:200_001]) == (206, True)


@pytest.mark.one_engine
def test_link_of_the_store_is_for_one_range(hub_on_store: RunningHub, place: Place) -> None:
    with with_ada(hub_on_store) as ada:
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        headers = {"range": "bytes=120000-130000"}
        plan = client.get(f"/v1/reconstructions/{hash_text(file.hash)}", **headers).json()
        ((fetch,),) = plan["fetch_info"].values()
        is_at_hub = urlsplit(fetch["url"]).netloc == urlsplit(hub_on_store.url).netloc
        assert is_at_hub == (not place.is_remote)
        start, end = fetch["url_range"]["start"], fetch["url_range"]["end"]
        found = httpx.get(fetch["url"], headers={"range": f"bytes={start}-{end}"})
        assert (found.status_code, len(found.content)) == (206, end - start + 1)
        for other in ("bytes=0-10", f"bytes={start}-{end + 1}", f"bytes={start - 1}-{end}"):
            assert httpx.get(fetch["url"], headers={"range": other}).status_code == 403, other


def test_chunks_of_a_deleted_repo_are_deleted(hub_on_store: RunningHub) -> None:
    with with_ada(hub_on_store) as ada:
        XetClient(ada, "ada/tiny").sign_in().upload(CONTENT)
        assert xorbs_in_store(hub_on_store) == 1
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        tidy(hub_on_store)
        assert xorbs_in_store(hub_on_store) == 1
        hub_on_store.clock.advance(DAY // SECOND + 1)
        tidy(hub_on_store)
        assert xorbs_in_store(hub_on_store) == 0


def test_store_that_refuses_a_deletion_does_not_stop_the_clean_up(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: StoreRequest) -> bytes:
        if request.method == "DELETE":
            return error(403, "AccessDenied")
        return response(200, b"<ListBucketResult></ListBucketResult>" if request.method == "GET" else b"")

    async def xorb_count(opened: Hub) -> int:
        row = await opened.db.one("SELECT COUNT(*) AS n FROM xorbs", {})
        assert row is not None
        return int(row["n"])

    with run_far_end(answer) as far_end:
        hub = hub_on(far_end, engine, tmp_path, monkeypatch)
        hub.start()
        try:
            with with_ada(hub) as ada:
                client = XetClient(ada, "ada/tiny").sign_in()
                for number in range(3):
                    assert client.send_xorb(xorb_of(b"%d" % number * 10_000)).status_code == 200
                for _ in range(2):
                    hub.clock.advance(DAY // SECOND + 1)
                    tidy(hub)
                assert far_end.count("DELETE") == 3
                assert hub.call(xorb_count) == 0
        finally:
            hub.stop()
