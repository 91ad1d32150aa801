"""Large files: the batch API, signed URLs, uploads in one piece and in parts."""

import hashlib
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo, send_large
from tests.bed.running_hub import RunningHub

CONTENT = bytes(range(100))
OID = hashlib.sha256(CONTENT).hexdigest()


def batch(client: httpx.Client, operation: str, *objects: tuple[str, int], repo: str = "ada/tiny", **more: Any) -> Any:
    asked = {"operation": operation, "objects": [{"oid": oid, "size": size} for oid, size in objects], **more}
    answer = client.post(f"/{repo}.git/info/lfs/objects/batch", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.git-lfs+json"
    assert answer.json()["transfer"] == ("xet" if "xet" in more.get("transfers", ()) else "basic")
    return answer.json()["objects"]


def stored_files(hub: RunningHub) -> list[str]:
    """All stored large files, complete or not."""
    root = hub.settings.data_dir / "lfs"
    return sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())


def changed(href: str, **query: str) -> str:
    parts_of = urlsplit(href)
    return parts_of._replace(query=urlencode(dict(parse_qsl(parts_of.query)) | query)).geturl()


@pytest.mark.one_engine
def test_file_is_uploaded_and_downloaded(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        more = {"hash_algo": "sha_256", "transfers": ["basic", "multipart"], "ref": {"name": "refs/heads/main"}}
        (one,) = batch(ada, "upload", (OID, 100), **more)
        assert (one["oid"], one["size"], one["authenticated"]) == (OID, 100, True)
        href = one["actions"]["upload"]["href"]
        # Without a token: the signed URL is the permission.
        assert anyone.put(href, content=CONTENT).status_code == 200
        assert anyone.put(href, content=CONTENT).status_code == 200, "a client that lost the answer sends it again"
        (again,) = batch(ada, "upload", (OID, 100))
        assert "actions" not in again
        found, missing = batch(anyone, "download", (OID, 100), ("0" * 64, 1))
        assert (missing["error"]["code"], "actions" in missing) == (404, False)
        got = anyone.get(found["actions"]["download"]["href"], headers={"range": "bytes=5-9"})
        assert (got.status_code, got.content) == (206, CONTENT[5:10])
        assert got.headers["content-type"] == "application/octet-stream"
        assert got.headers["content-security-policy"] == "default-src 'none'; sandbox"
        assert stored_files(hub) == [f"{OID[:2]}/{OID[2:4]}/{OID}"]


@pytest.mark.one_engine
def test_upload_that_differs_from_its_announcement_is_not_stored(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        href = batch(ada, "upload", (OID, 100))[0]["actions"]["upload"]["href"]
        for wrong in (CONTENT[:-1], CONTENT + b"x", b"x" * 100, b"", b"y" * 1_000_000):
            assert anyone.put(href, content=wrong).status_code == 422
        assert stored_files(hub) == []
        assert batch(ada, "download", (OID, 100))[0]["error"]["code"] == 404
        # A wrong size: neither uploaded nor found.
        wrong_size = batch(ada, "upload", (OID, 99))[0]["actions"]["upload"]["href"]
        assert anyone.put(wrong_size, content=CONTENT).status_code == 422
        for objects in ([("x", 1)], [(OID.upper(), 1)], [(OID, -1)], [(OID, 1 << 41)], [(OID, 1)] * 1001):
            asked = {"operation": "upload", "objects": [{"oid": oid, "size": size} for oid, size in objects]}
            assert ada.post("/ada/tiny.git/info/lfs/objects/batch", json=asked).status_code == 422
        for body in (b"", b"{}", b"[" * 200_000, b'{"operation": "delete", "objects": []}', b"\xff"):
            refused = ada.post("/ada/tiny.git/info/lfs/objects/batch", content=body)
            assert 400 <= refused.status_code < 500, body[:20]


@pytest.mark.one_engine
def test_signed_url_is_valid_for_one_operation(hub: RunningHub) -> None:
    other = hashlib.sha256(b"other").hexdigest()
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        ids = [create_repo(ada, name)["id"] for name in ("tiny", "second")]
        href = batch(ada, "upload", (OID, 100))[0]["actions"]["upload"]["href"]
        tampered = [
            href.replace(OID, other),
            href.replace(ids[0], ids[1]),
            changed(href, size="5"),
            changed(href, part="1"),
            changed(href, expires=str(10**17)),
            changed(href, signature="0" * 64),
            changed(href, signature=""),
            changed(href, signature="é"),
            href.replace("/lfs/upload/", "/lfs/part/"),
        ]
        for address in tampered:
            assert anyone.put(address, content=CONTENT).status_code == 403, address
        for address in (*(changed(href, size=size) for size in ("x", "-1", "9" * 30)), href + "&size=1"):
            assert anyone.put(address, content=CONTENT).status_code in (400, 403), address
        download = href.replace("/lfs/upload/", "/lfs/download/")
        assert anyone.get(download).status_code == 403
        for method in ("GET", "POST", "DELETE", "PATCH"):
            assert anyone.request(method, href).status_code == 405
        complete = href.replace("/lfs/upload/", "/lfs/complete/")
        assert anyone.post(complete, json={"oid": OID, "parts": []}).status_code == 403
        hub.clock.advance(6 * 3600)
        assert anyone.put(href, content=CONTENT).status_code == 403
        hub.clock.advance(-1)
        assert anyone.put(href, content=CONTENT).status_code == 200
        fetch = batch(ada, "download", (OID, 100))[0]["actions"]["download"]["href"]
        assert anyone.get(fetch).content == CONTENT
        assert anyone.put(fetch, content=CONTENT).status_code == 405
        action = batch(ada, "download", (OID, 100))[0]["actions"]["download"]
        hub.clock.advance(action["expires_in"])
        assert anyone.get(action["href"]).status_code == 403, "a lost right is soon felt"
        hub.clock.advance(-action["expires_in"])
        assert anyone.get(fetch.replace(ids[0], ids[1])).status_code == 403
        # Signed URLs end with the repo.
        late = batch(ada, "upload", (other, 5))[0]["actions"]["upload"]["href"]
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        assert anyone.get(fetch).status_code == 404
        gone = anyone.put(late, content=b"other")
        assert (gone.status_code, gone.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.one_engine
@pytest.mark.limits(part_bytes=40, multipart_threshold=80)
def test_urls_of_a_large_upload_are_valid_until_a_slow_client_has_sent_it(hub: RunningHub) -> None:
    other = hashlib.sha256(b"other").hexdigest()
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        # Both files are sent one after the other, the larger one first: 28 hours at 50 kB/s.
        _, small = batch(ada, "upload", (other, 5_000_000_000), (OID, 100), transfers=["multipart"])
        upload, verify = small["actions"]["upload"], small["actions"]["verify"]
        assert upload["expires_in"] == verify["expires_in"] == 6 * 3600 + 100_000
        hub.clock.advance(6 * 3600 + 99_999)
        header, sent = upload["header"], []
        for number in (1, 2, 3):
            answer = anyone.put(header[f"{number:05d}"], content=CONTENT[(number - 1) * 40 : number * 40])
            sent.append({"partNumber": number, "etag": answer.headers["etag"]})
        assert anyone.post(upload["href"], json={"oid": OID, "parts": sent}).status_code == 200
        assert anyone.post(verify["href"], json={"oid": OID, "size": 100}).status_code == 200
        hub.clock.advance(1)
        late = anyone.put(header["00001"], content=CONTENT[:40])
        assert (late.status_code, "start the upload or download again" in late.text) == (403, True)
        (huge,) = batch(ada, "upload", (other, 1 << 40))
        assert huge["actions"]["upload"]["expires_in"] == 7 * 24 * 3600


@pytest.mark.one_engine
def test_upload_and_download_need_permission(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        create_repo(owner, "tiny")
        create_repo(owner, "hidden", private=True)
        send_large(owner, "ada/tiny", CONTENT)
        send_large(owner, "ada/hidden", CONTENT)
        reader = create_token(hub, ada, "read")

        def status(client: httpx.Client, operation: str, repo: str) -> int:
            asked = {"operation": operation, "objects": [{"oid": OID, "size": 100}]}
            return client.post(f"/ada/{repo}.git/info/lfs/objects/batch", json=asked).status_code

        assert [status(client, "download", "tiny") for client in (owner, other, anyone)] == [200, 200, 200]
        assert [status(client, "download", "hidden") for client in (owner, other, anyone)] == [200, 404, 401]
        # Users who may open a pull request may upload its files.
        assert [status(client, "upload", "tiny") for client in (owner, other, anyone)] == [200, 200, 401]
        assert [status(client, "upload", "hidden") for client in (owner, other, anyone)] == [200, 404, 401]
        with api(hub, reader) as reading:
            assert [status(reading, "download", "hidden"), status(reading, "upload", "hidden")] == [200, 403]
        assert owner.put("/api/models/ada/tiny/settings", json={"gated": "manual"}).status_code == 200
        assert [status(client, "download", "tiny") for client in (owner, other, anyone)] == [200, 403, 401]


@pytest.mark.limits(part_bytes=40, multipart_threshold=80)
def test_file_is_uploaded_in_parts(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        (one,) = batch(ada, "upload", (OID, 100), transfers=["basic", "multipart"])
        action = one["actions"]["upload"]
        header = action["header"]
        assert header.pop("chunk_size") == "40"
        assert sorted(header) == ["00001", "00002", "00003"]
        for wrong in (CONTENT[:39], CONTENT[:41], b""):
            assert anyone.put(header["00001"], content=wrong).status_code == 422
        pieces = {number: CONTENT[(number - 1) * 40 : number * 40] for number in (1, 2, 3)}
        etags = {n: anyone.put(header[f"{n:05}"], content=pieces[n]).headers["etag"] for n in (1, 3)}

        def complete(given: list[tuple[int, str]], oid: str = OID) -> int:
            body = {"oid": oid, "parts": [{"partNumber": number, "etag": etag} for number, etag in given]}
            return anyone.post(action["href"], json=body).status_code

        never = '"' + "0" * 32 + '"'
        assert complete([(1, etags[1]), (2, never), (3, etags[3])]) == 422, "the second was not received"
        bad = anyone.put(header["00002"], content=b"x" * 40).headers["etag"]
        assert complete([(1, etags[1]), (2, bad), (3, etags[3])]) == 422, "not the announced file"
        etags[2] = anyone.put(header["00002"], content=pieces[2]).headers["etag"]
        good = [(number, etags[number]) for number in (1, 2, 3)]
        for given in (
            good[:2],
            [*good, (4, etags[1])],
            [*good, (3, etags[3])],
            [(0, etags[1]), *good[1:]],
            [(1, etags[2]), (2, etags[1]), good[2]],
            [(1, "../../x"), *good[1:]],
            [(1, "a" * 5000), *good[1:]],
            [(1, "é" * 32), *good[1:]],
            [(1, ""), *good[1:]],
            [],
        ):
            assert complete(given) == 422, given
        assert complete(good, oid="0" * 64) == 422
        assert anyone.post(action["href"], content=b"[" * 100_000).status_code == 422
        assert batch(ada, "download", (OID, 100))[0]["error"]["code"] == 404
        assert complete(list(reversed(good))) == 200
        assert complete(good) == 200, "a client that lost the answer asks again"
        assert stored_files(hub) == [f"{OID[:2]}/{OID[2:4]}/{OID}"]
        fetch = batch(ada, "download", (OID, 100))[0]["actions"]["download"]["href"]
        assert anyone.get(fetch).content == CONTENT
        verify = one["actions"]["verify"]["href"]
        assert ada.post(verify, json={"oid": OID, "size": 100}).status_code == 200
        assert ada.post(verify, json={"oid": OID, "size": 99}).status_code == 404


def test_number_of_parts_is_limited(sqlite_hub: RunningHub) -> None:
    """Each part needs a URL: a thousand files of a terabyte would have sixteen million."""
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        objects = [(f"{number:064x}", 1 << 40) for number in range(100)]
        said = batch(ada, "upload", *objects, transfers=["multipart"])
        counts = [len(one["actions"]["upload"].get("header", {})) for one in said]
        assert 0 < sum(counts) <= 2100
        assert all("href" in one["actions"]["upload"] for one in said)
        first = said[0]["actions"]["upload"]["header"]
        assert (len(first) - 1) * int(first["chunk_size"]) >= 1 << 40


def test_guests_upload_only_where_they_may_open_pull_requests(sqlite_hub: RunningHub) -> None:
    tokens = [create_token(sqlite_hub, create_user(sqlite_hub, name)) for name in ("ada", "bob")]
    with api(sqlite_hub, tokens[0]) as ada, api(sqlite_hub, tokens[1]) as bob:
        create_repo(ada, "tiny")
        asked = {"operation": "upload", "objects": [{"oid": OID, "size": 100}]}
        address = "/ada/tiny.git/info/lfs/objects/batch"
        assert bob.post(address, json=asked).status_code == 200
        assert ada.put("/api/models/ada/tiny/settings", json={"discussionsDisabled": True}).status_code == 200
        assert [client.post(address, json=asked).status_code for client in (bob, ada)] == [403, 200]
