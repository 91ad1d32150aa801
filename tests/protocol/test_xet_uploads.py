"""Large files sent as chunks: tokens, xorbs, shards, commits, and what every other way to read a file returns."""

import hashlib
import json
import random

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo, send_large, send_lines
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, file_of, shard_of, whole_file, xorb_of, xorb_of_chunks

from hubgate.server.hub.xet.hashes import hash_text

CONTENT = random.Random(7).randbytes(300_000) + b"the same line again\n" * 10_000


def objects_in(hub: RunningHub) -> int:
    return sum(1 for file in (hub.settings.data_dir / "xorbs").rglob("*") if file.is_file())


def test_file_is_read_in_every_way(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        committed = client.commit("w.bin", CONTENT)
        assert committed.status_code == 200, committed.text
        # Over plain HTTP, whole and in part.
        found = anyone.get("/ada/tiny/resolve/main/w.bin")
        assert (found.status_code, found.content == CONTENT) == (200, True)
        assert found.headers["etag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'
        for start, end in ((0, 1), (65_000, 400_000), (len(CONTENT) - 1, len(CONTENT))):
            part = anyone.get("/ada/tiny/resolve/main/w.bin", headers={"range": f"bytes={start}-{end - 1}"})
            assert (part.status_code, part.content == CONTENT[start:end]) == (206, True), start
        # As git-lfs does.
        wanted = {"oid": hashlib.sha256(CONTENT).hexdigest(), "size": len(CONTENT)}
        answer = anyone.post(
            "/ada/tiny.git/info/lfs/objects/batch", json={"operation": "download", "objects": [wanted]}
        )
        href = answer.json()["objects"][0]["actions"]["download"]["href"]
        assert httpx.get(href).content == CONTENT
        # As chunks, with the hash and the token that the headers name.
        head = anyone.head("/ada/tiny/resolve/main/w.bin")
        assert head.headers["x-xet-hash"] == hash_text(file.hash)
        assert int(head.headers["content-length"]) == len(CONTENT)
        listed = {entry["path"]: entry for entry in anyone.get("/api/models/ada/tiny/tree/main").json()}
        assert listed["w.bin"]["xetHash"] == hash_text(file.hash)
        token = anyone.get(head.headers["link"].partition(">")[0].removeprefix("<"))
        assert (token.status_code, token.headers["x-xet-cas-url"]) == (200, f"{hub.url}/xet")
        reader = XetClient(anyone, "ada/tiny", headers={"authorization": f"Bearer {token.json()['accessToken']}"})
        for version in ("v1", "v2"):
            assert reader.download(file, version) == CONTENT
            assert reader.download(file, version, (70_000, 300_000)) == CONTENT[70_000:300_000]
        assert reader.get(f"/v1/reconstructions/{'0' * 63}1").status_code == 404
        beyond = reader.get(f"/v2/reconstructions/{hash_text(file.hash)}", range=f"bytes={len(CONTENT)}-")
        assert beyond.status_code == 416


@pytest.mark.one_engine
def test_clients_may_ask_how_to_read_a_file_as_chunks(hub: RunningHub) -> None:
    asked = {"accept": "application/vnd.xet-fileinfo+json"}
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny", files=[{"path": "README.md", "content": "# x"}])
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        assert client.commit("w.bin", CONTENT).status_code == 200
        etag = f'"{hashlib.sha256(CONTENT).hexdigest()}"'
        # One client asks for the first byte and accepts everything else too.
        for more in ({}, {"range": "bytes=0-0", "accept": "application/vnd.xet-fileinfo+json, */*"}):
            found = anyone.get("/ada/tiny/resolve/main/w.bin", headers={**asked, **more})
            assert (found.status_code, found.headers["content-type"]) == (200, asked["accept"])
            refresh = found.headers["x-xet-refresh-route"]
            info = {"hash": hash_text(file.hash), "size": len(CONTENT), "etag": etag, "refreshUrl": refresh}
            assert found.json() == info
            linked = found.headers["x-linked-etag"], found.headers["x-linked-size"], found.headers["x-xet-hash"]
            assert linked == (etag, str(len(CONTENT)), hash_text(file.hash))
            assert found.headers["link"].startswith(f'<{refresh}>; rel="xet-auth", ')
            assert found.headers["cache-control"] == "no-store"
            assert "etag" not in found.headers, "of the file, not of this response"
        for answer in (found, anyone.get("/ada/tiny/resolve/main/w.bin")):
            assert answer.headers["vary"] == "Authorization, Cookie, Accept"
        head = anyone.head("/ada/tiny/resolve/main/w.bin", headers=asked)
        assert (head.headers["etag"], int(head.headers["content-length"])) == (etag, len(CONTENT))
        # Other files have no chunks.
        assert anyone.get("/ada/tiny/resolve/main/README.md", headers=asked).text == "# x"
        assert anyone.get("/ada/tiny/raw/main/w.bin", headers=asked).text.startswith("version https://git-lfs")
        # Who may not read the file gets no hash either.
        ada.put("/api/models/ada/tiny/settings", json={"gated": "manual"}).raise_for_status()
        assert anyone.get("/ada/tiny/resolve/main/w.bin", headers=asked).status_code == 401


@pytest.mark.one_engine
def test_files_that_came_by_lfs_have_no_xet_hash(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        value = {"path": "w.bin", "algo": "sha256", "oid": oid, "size": len(CONTENT)}
        assert send_lines(ada, "ada/tiny", ("lfsFile", value)).status_code == 200
        found = ada.get("/ada/tiny/resolve/main/w.bin")
        assert (found.content == CONTENT, "x-xet-hash" in found.headers) == (True, False)
        # The same file as chunks is accepted, and stays one object.
        XetClient(ada, "ada/tiny").sign_in().upload(CONTENT)
        assert ada.get("/ada/tiny/resolve/main/w.bin").content == CONTENT


def test_file_of_several_xorbs_and_repeated_parts(hub: RunningHub) -> None:
    first, second = random.Random(1).randbytes(200_000), random.Random(2).randbytes(150_000)
    a, b = xorb_of(first), xorb_of(second)
    content = first + second + first
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert [client.send_xorb(xorb).json() for xorb in (a, b, a)] == [
            {"was_inserted": True},
            {"was_inserted": True},
            {"was_inserted": False},
        ]
        file = file_of(content, (a, 0, len(a.table)), (b, 0, len(b.table)), (a, 0, len(a.table)))
        assert client.send_shard([file], [a, b]).json() == {"result": 1}
        assert client.commit("w.bin", content).status_code == 200
        assert ada.get("/ada/tiny/resolve/main/w.bin").content == content
        across = (190_000, 360_000)
        assert client.download(file, "v2", across) == content[across[0] : across[1]]
        assert objects_in(hub) == 2


@pytest.mark.one_engine
def test_progress_of_a_shard_ends_with_its_result(hub: RunningHub) -> None:
    xorb = xorb_of(CONTENT)
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        early = client.post("/v2/shards", shard_of([whole_file(CONTENT, xorb)]))
        last = json.loads(early.text.splitlines()[-1])
        assert (early.status_code, last["type"], last["retryable"]) == (200, "error", False)
        assert "was not uploaded to this repo" in last["message"]
        assert client.send_xorb(xorb).status_code == 200
        done = client.post("/v2/shards", shard_of([whole_file(CONTENT, xorb)], [xorb]))
        assert done.headers["content-type"] == "application/x-ndjson"
        events = [json.loads(line) for line in done.text.splitlines()]
        assert {event["type"] for event in events[:-1]} == {"validating"}
        assert events[-1] == {"type": "result", "result": 1}
        # A feature of newer servers, without which clients send the whole xorb.
        assert client.post(f"/v1/xorb-grants/default/{xorb.hash}", b"").status_code == 404


@pytest.mark.one_engine
def test_wrong_uploads_leave_nothing_behind(hub: RunningHub) -> None:
    xorb, other = xorb_of(CONTENT), xorb_of(b"other" * 5000)
    file = whole_file(CONTENT, xorb)
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        for body in (b"", xorb.body[:-1], xorb.body + b"\0", other.body, b"\xff" * 100, xorb.body[10:]):
            refused = client.send_xorb(xorb, body)
            assert refused.status_code == 400, refused.text
        for name in ("x", xorb.hash.upper(), xorb.hash[:-1], f"{xorb.hash}0"):
            assert client.post(f"/v1/xorbs/default/{name}", xorb.body).status_code == 400
        assert objects_in(hub) == 0
        assert client.send_xorb(xorb).status_code == 200
        wrong = [
            file_of(CONTENT, (xorb, 1, len(xorb.table))),
            whole_file(CONTENT, xorb, sha256="0" * 64),
            whole_file(CONTENT, other),
        ]
        bodies = [b"", b"x" * 1000, shard_of([file])[:-1], *(shard_of([each]) for each in wrong)]
        for body in bodies:
            refused = client.post("/v1/shards", body)
            assert refused.status_code == 400, refused.text
        # One wrong file: none of the shard is registered.
        assert client.send_shard([file, wrong[1]]).status_code == 400
        refused = client.commit("w.bin", CONTENT)
        assert (refused.status_code, "was not uploaded" in refused.text) == (422, True)
        assert not list((hub.settings.data_dir / "lfs" / "incoming").glob("*"))


@pytest.mark.one_engine
@pytest.mark.limits(shard_files=2, shard_xorbs=3, shard_chunks=20, shard_bytes=1_000_000)
def test_work_of_a_shard_is_limited(hub: RunningHub) -> None:
    """A xorb can be named any number of times, and all of it is hashed each time."""
    chunk = xorb_of_chunks([b"a" * 50_000, b"b" * 50_000])
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.send_xorb(chunk).status_code == 200
        content = b"a" * 50_000 + b"b" * 50_000
        for times, expected in ((9, 200), (11, 400)):
            repeated = file_of(content * times, *[(chunk, 0, 2)] * times)
            assert client.send_shard([repeated]).status_code == expected, times
        assert client.send_shard([whole_file(content, chunk)] * 3).status_code == 400
        many = [xorb_of_chunks([bytes([number])]) for number in range(4)]
        assert [client.send_xorb(xorb).status_code for xorb in many] == [200] * 4
        assert client.send_shard([whole_file(content, chunk)], many[:2]).status_code == 200
        refused = client.send_shard([whole_file(content, chunk)], many)
        assert (refused.status_code, "too many xorbs" in refused.text) == (400, True)


@pytest.mark.one_engine
def test_empty_file_and_tiny_file_are_accepted(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.send_shard([file_of(b"")]).status_code == 200
        client.upload(b"x")
        for path, content in (("empty.bin", b""), ("one.bin", b"x")):
            assert client.commit(path, content).status_code == 200
            assert ada.get(f"/ada/tiny/resolve/main/{path}").content == content


@pytest.mark.one_engine
def test_batch_sends_clients_that_offer_it_to_the_storage_api(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        XetClient(ada, "ada/tiny").sign_in().upload(CONTENT)
        known = {"oid": hashlib.sha256(CONTENT).hexdigest(), "size": len(CONTENT)}
        asked = {"operation": "upload", "transfers": ["basic", "multipart", "xet"], "ref": {"name": "main"}}
        answer = ada.post(
            "/ada/tiny.git/info/lfs/objects/batch", json={**asked, "objects": [known, {"oid": "0" * 64, "size": 5}]}
        ).json()
        assert (answer["transfer"], "actions" in answer["objects"][0]) == ("xet", False)
        href = answer["objects"][1]["actions"]["upload"]["href"]
        assert ada.get(href).json()["casUrl"] == f"{hub.url}/xet"
        assert anyone.get(href).status_code == 401


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("xorbs", "shards", "reconstructions"),
    [
        ("/xorbs/default", "/shards", "/reconstructions"),
        ("/xorb/default", f"/shard/default/{'0' * 64}", "/reconstruction"),
    ],
)
def test_paths_of_older_clients_work(hub: RunningHub, xorbs: str, shards: str, reconstructions: str) -> None:
    """hf_xet before 1.2.1 and before 1.1.10."""
    xorb = xorb_of(CONTENT)
    file = whole_file(CONTENT, xorb)
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.post(f"{xorbs}/{xorb.hash}", xorb.body).json() == {"was_inserted": True}
        assert client.post(shards, shard_of([file], [xorb])).json() == {"result": 1}
        found = client.get(f"{reconstructions}/{hash_text(file.hash)}").json()
        assert found == {**client.get(f"/v1/reconstructions/{hash_text(file.hash)}").json()}
