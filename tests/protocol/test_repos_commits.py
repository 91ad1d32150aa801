"""Commits over HTTP: changes, errors and concurrency."""

import base64
import hashlib
import json
from itertools import pairwise
from typing import Any

import httpx
import pytest
from tests.bed import lean_http
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.commits.commit import BLOBS_AT_ONCE

pytestmark = pytest.mark.one_engine

NDJSON = {"content-type": "application/x-ndjson"}
HEADER = b'{"key": "header", "value": {"summary": "x"}}\n'


def tree(client: httpx.Client, repo: str, rev: str = "main") -> dict[str, dict[str, Any]]:
    found = client.get(f"/api/models/{repo}/tree/{rev}?recursive=true").json()
    return {entry["path"]: entry for entry in found}


def test_files_are_added_changed_and_deleted(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": b"one", "deep/er/b.txt": b"two", "empty": b""})
        assert {"a.txt", "deep", "deep/er", "deep/er/b.txt", "empty", ".gitattributes"} == set(tree(ada, "ada/tiny"))
        create_commit(ada, "ada/tiny", {"a.txt": b"changed"}, delete=["deep"])
        assert set(tree(ada, "ada/tiny")) == {"a.txt", "empty", ".gitattributes"}
        assert ada.get("/ada/tiny/resolve/main/a.txt").content == b"changed"


def test_each_of_many_small_files_gets_its_own_content(hub: RunningHub) -> None:
    """Few are written with the commit, more before it."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for count in (BLOBS_AT_ONCE, 2 * BLOBS_AT_ONCE + 1):
            files = {f"{count}/{number}.txt": b"%d of %d" % (number, count) for number in range(count)}
            create_commit(ada, "ada/tiny", files)
            entries = tree(ada, "ada/tiny")
            for path, content in files.items():
                assert entries[path]["oid"] == hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def test_rules_and_card_of_the_last_commit_apply_to_the_next(hub: RunningHub) -> None:
    """Both are in memory after a commit."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(
            ada, "ada/tiny", {"d/.gitattributes": b"*.x filter=lfs\n", "README.md": b"---\ntags: [one]\n---\n"}
        )
        create_commit(ada, "ada/tiny", {"d/a.x": b"large", "a.x": b"small"})
        assert ["lfs" in tree(ada, "ada/tiny")[path] for path in ("d/a.x", "a.x")] == [True, False]
        assert "one" in ada.get("/api/models/ada/tiny").json()["tags"]
        create_commit(ada, "ada/tiny", {"README.md": b"---\ntags: [two]\n---\n"}, delete=["d/.gitattributes"])
        create_commit(ada, "ada/tiny", {"d/b.x": b"small"})
        assert ["lfs" in tree(ada, "ada/tiny")[path] for path in ("d/a.x", "d/b.x")] == [True, False]
        tags = ada.get("/api/models/ada/tiny").json()["tags"]
        assert ("two" in tags, "one" in tags) == (True, False)


def test_stale_parent_is_rejected_with_the_text_clients_compare(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        first = ada.get("/api/models/ada/tiny").json()["sha"]
        create_commit(ada, "ada/tiny", {"a": b"1"}, parent=first)
        refused = send_commit(ada, "ada/tiny", {"a": b"2"}, parent=first)
        assert refused.status_code == 412
        expected = "The branch was updated since you opened this page. Please refresh and try again."
        assert refused.json()["error"] == expected


@pytest.mark.parametrize(
    "path",
    [
        "../a",
        "/a",
        "a/../b",
        ".git/config",
        "a/.GIT/x",
        "a\\b",
        "a//b",
        "",
        "a/",
        "git~1/x",
        ".git./x",
        "\x00",
        "x" * 300,
    ],
)
def test_paths_outside_a_checkout_are_rejected(hub: RunningHub, path: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        before = tree(ada, "ada/tiny")
        assert send_commit(ada, "ada/tiny", {"good": b"", path: b"x"}).status_code == 422
        asked = {"files": [{"path": path, "size": 1, "sample": ""}]}
        assert ada.post("/api/models/ada/tiny/preupload/main", json=asked).status_code == 422
        assert tree(ada, "ada/tiny") == before


def test_deleting_a_missing_file_is_rejected(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        refused = send_commit(ada, "ada/tiny", {}, delete=["nothing"])
        assert (refused.status_code, refused.headers["x-error-code"]) == (404, "EntryNotFound")
        assert "A file with this name doesn't exist" in refused.json()["error"]


def test_large_file_is_stored_once_however_it_is_sent(hub: RunningHub) -> None:
    content = b"\x00weights" * 1000
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "one")
        create_repo(ada, "two")
        create_commit(ada, "ada/one", {"w.safetensors": content})
        oid = send_large(ada, "ada/two", content)
        lines = [
            {"key": "header", "value": {"summary": "Large"}},
            {"key": "lfsFile", "value": {"path": "w.safetensors", "algo": "sha256", "oid": oid, "size": len(content)}},
        ]
        body = "\n".join(map(json.dumps, lines))
        assert ada.post("/api/models/ada/two/commit/main", content=body, headers=NDJSON).status_code == 200
        entries = [tree(ada, f"ada/{name}")["w.safetensors"] for name in ("one", "two")]
        assert entries[0] == entries[1]
        assert entries[0]["lfs"]["oid"] == hashlib.sha256(content).hexdigest()
        for name in ("one", "two"):
            got = ada.get(f"/ada/{name}/resolve/main/w.safetensors")
            assert (got.content, got.headers["etag"]) == (content, f'"{oid}"')
            assert ada.get(f"/ada/{name}/raw/main/w.safetensors").text.startswith("version https://git-lfs")


def test_hash_of_a_file_does_not_give_access_to_it(hub: RunningHub) -> None:
    secret = b"\x00private weights"
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, eve)) as thief:
        create_repo(owner, "hidden", private=True)
        oid = send_large(owner, "ada/hidden", secret)
        create_repo(thief, "mine")
        line = {"key": "lfsFile", "value": {"path": "w.bin", "algo": "sha256", "oid": oid, "size": len(secret)}}
        body = "\n".join(map(json.dumps, [{"key": "header", "value": {"summary": "Mine"}}, line]))
        assert thief.post("/api/models/eve/mine/commit/main", content=body, headers=NDJSON).status_code == 422
        asked = {"operation": "download", "objects": [{"oid": oid, "size": len(secret)}]}
        answer = thief.post("/eve/mine.git/info/lfs/objects/batch", json=asked).json()
        assert answer["objects"][0]["error"]["code"] == 404
        again = {"operation": "upload", "objects": [{"oid": oid, "size": len(secret)}]}
        offered = thief.post("/eve/mine.git/info/lfs/objects/batch", json=again).json()["objects"][0]
        assert "upload" in offered["actions"], "a client that has the file can send it"


def test_large_file_that_differs_from_its_announcement_is_rejected(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = hashlib.sha256(b"right").hexdigest()
        asked = {"operation": "upload", "objects": [{"oid": oid, "size": 5}]}
        (one,) = ada.post("/ada/tiny.git/info/lfs/objects/batch", json=asked).json()["objects"]
        href = one["actions"]["upload"]["href"]
        for wrong in (b"wrong", b"righ", b"right and more"):
            assert lean_http.put(href, content=wrong).status_code == 422
        assert lean_http.put(href.replace(oid, "0" * 64), content=b"right").status_code == 403
        assert lean_http.put(href.replace("size=5", "size=6"), content=b"right!").status_code == 403
        hub.clock.advance(7 * 3600)
        assert lean_http.put(href, content=b"right").status_code == 403
        hub.clock.advance(-7 * 3600)
        assert lean_http.put(href, content=b"right").status_code == 200
        verify = one["actions"]["verify"]["href"]
        assert ada.post(verify, json={"oid": oid, "size": 5}).status_code == 200


@pytest.mark.parametrize("size", [10, 70_000, 3_000_000])
@pytest.mark.parametrize("encoding", ["base64", "utf-8"])
def test_content_is_read_correctly_at_every_split(hub: RunningHub, size: int, encoding: str) -> None:
    """Split in escapes, in multi-byte characters and in base64 groups."""
    text = ('é"\\\n\u0001😀 plain ' * (size // 8 + 1))[:size]
    content = text.encode()
    given = base64.b64encode(content).decode() if encoding == "base64" else text
    value = {"content": given, "path": "text.txt", "encoding": encoding}
    lines = [{"key": "header", "value": {"summary": "Text"}}, {"key": "file", "value": value}]
    for ascii_only in (True, False):
        body = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in lines).encode()
        with api(hub, create_token(hub, _user(hub, f"ada{ascii_only:d}"))) as ada:
            name = ada.get("/api/whoami-v2").json()["name"]
            create_repo(ada, "tiny")
            pieces = (body[at : at + 65_531] for at in range(0, len(body), 65_531))
            answer = ada.post(f"/api/models/{name}/tiny/commit/main", content=pieces, headers=NDJSON)
            assert answer.status_code == 200, answer.text
            assert ada.get(f"/{name}/tiny/resolve/main/text.txt").content == content


def _user(hub: RunningHub, name: str) -> Any:
    return create_user(hub, name)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b'{"key": "header", "value": {}}',
        b'{"key": "file", "value": {"path": "a", "content": ""}}',
        HEADER + b'{"key": "odd", "value": {}}',
        HEADER + b'{"key": "file", "value": {"path": "a", "content": "%", "encoding": "base64"}}',
        HEADER + b"x" * 200_000,
        HEADER + b'{"key": "file", "value": {"content": "' + b"A" * 200_000,
        b'{"key": "header", "value": {"summary": "x", "parentCommit": "zzz"}}',
    ],
)
def test_malformed_commits_are_rejected(hub: RunningHub, body: bytes) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        answer = ada.post("/api/models/ada/tiny/commit/main", content=body, headers=NDJSON)
        assert answer.status_code in (400, 422), answer.text
        assert list((hub.settings.data_dir / "lfs" / "incoming").glob("*")) == []


def test_concurrent_commits_form_one_history(hub: RunningHub) -> None:
    """Each commit has another as its parent, and each has exactly one event."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "busy")
        answers = run_concurrently([_one_commit(ada, number) for number in range(30)])
        assert [answer.status_code for answer in answers] == [200] * 30
        log = ada.get("/api/models/ada/busy/commits/main?limit=100")
        assert int(log.headers["x-total-count"]) == 31
        assert {entry["id"] for entry in log.json()} >= {answer.json()["commitOid"] for answer in answers}
        events = ada.get("/api/models/ada/busy/events").json()
        assert [event["seq"] for event in events] == list(range(1, 32))
        moves = [event["payload"]["updatedRefs"][0] for event in events[1:]]
        assert all(before["newSha"] == after["oldSha"] for before, after in pairwise(moves))
        assert set(tree(ada, "ada/busy")) >= {f"file{number}" for number in range(30)}


def _one_commit(client: httpx.Client, number: int) -> Any:
    return lambda: send_commit(client, "ada/busy", {f"file{number}": b"x"}, summary=f"Commit {number}")


def test_commit_can_create_a_pull_request(hub: RunningHub) -> None:
    ada, bob, eve = create_user(hub, "ada"), create_user(hub, "bob"), create_user(hub, "eve")
    with (
        api(hub, create_token(hub, ada)) as owner,
        api(hub, create_token(hub, bob)) as author,
        api(hub, create_token(hub, eve)) as other,
    ):
        create_repo(owner, "tiny")
        made = send_commit(author, "ada/tiny", {"idea": b"1"}, query="?create_pr=1", summary="An idea").json()
        assert made["pullRequestUrl"].endswith("/ada/tiny/discussions/1")
        assert send_commit(author, "ada/tiny", {"idea": b"2"}).status_code == 403
        assert send_commit(author, "ada/tiny", {"idea": b"2"}, rev="refs/pr/1").status_code == 200
        assert send_commit(owner, "ada/tiny", {"idea": b"3"}, rev="refs/pr/1").status_code == 200
        assert send_commit(other, "ada/tiny", {"idea": b"4"}, rev="refs/pr/1").status_code == 403
        assert send_commit(other, "ada/tiny", {"idea": b"4"}, rev="refs/pr/2").status_code == 404
        refs = owner.get("/api/models/ada/tiny/refs?include_prs=1").json()
        assert [ref["ref"] for ref in refs["pullRequests"]] == ["refs/pr/1"]
        assert "idea" not in tree(owner, "ada/tiny")
        missing = send_commit(author, "ada/tiny", {"idea": b"1"}, rev="nowhere", query="?create_pr=1")
        assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RevisionNotFound")
