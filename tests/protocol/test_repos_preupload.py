"""`/preupload`: how each file should be sent, and which need not be."""

import base64
import hashlib
from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large, send_lines, text_file
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

MIB = 1024 * 1024
# "text" and three NUL bytes, in base64.
TEXT, BINARY = "dGV4dA==", "AAAA"


def preupload(
    client: httpx.Client, files: dict[str, int], sample: str = TEXT, rev: str = "main", **more: Any
) -> dict[str, dict[str, Any]]:
    given = [{"path": path, "size": size, "sample": sample} for path, size in files.items()]
    answer = client.post(f"/api/models/ada/tiny/preupload/{rev}", json={"files": given, **more})
    assert answer.status_code == 200, answer.text
    said = answer.json()["files"]
    assert [file["path"] for file in said] == list(files), "every path is answered, in order"
    assert all(isinstance(file["shouldIgnore"], bool) for file in said)
    return {file["path"]: file for file in said}


def modes(said: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {path: file["uploadMode"] for path, file in said.items()}


def test_mode_depends_on_name_size_and_content(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        files = {"a.txt": 10, "w.bin": 10, "d/w.safetensors": 10, "big.txt": 10 * MIB + 1, "w.h5": 0}
        large = dict.fromkeys(("w.bin", "d/w.safetensors", "big.txt"), "lfs")
        assert modes(preupload(ada, files)) == {**dict.fromkeys(files, "regular"), **large}
        # An empty file has no content to store elsewhere.
        assert modes(preupload(ada, files, BINARY)) == {**dict.fromkeys(files, "lfs"), "w.h5": "regular"}
        # The rules of the request, of a folder, and revoked ones.
        given = "*.txt filter=lfs\nplain.txt -filter\n"
        said = preupload(ada, {"a.txt": 1, "plain.txt": 1, "w.bin": 1}, gitAttributes=given)
        assert modes(said) == {"a.txt": "lfs", "plain.txt": "regular", "w.bin": "regular"}
        rules = text_file("d/.gitattributes", "*.safetensors !filter\n/only/*.x filter=lfs diff=lfs\n")
        assert send_lines(ada, "ada/tiny", rules).status_code == 200
        said = preupload(
            ada, {"d/w.safetensors": 1, "w.safetensors": 1, "d/only/a.x": 1, "only/a.x": 1, "d/b/only/a.x": 1}
        )
        assert list(modes(said).values()) == ["regular", "lfs", "lfs", "regular", "regular"]


@pytest.mark.parametrize(
    ("start", "mode"),
    [
        (b"plain text\n", "regular"),
        ("Zażółć".encode() * 80, "regular"),
        # The sample ends within a character.
        ("é".encode()[:1], "regular"),
        (b"a\0b", "lfs"),
        (b"\x89PNG\r\n", "lfs"),
        (b"caf\xe9 au lait", "lfs"),
    ],
)
def test_mode_depends_on_the_first_bytes(hub: RunningHub, start: bytes, mode: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sample = base64.b64encode(start[:512]).decode()
        assert modes(preupload(ada, {"notes": 1000}, sample)) == {"notes": mode}
        assert modes(preupload(ada, {"notes": 1000}, "not base64!")) == {"notes": "regular"}


def test_existing_files_are_reported(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": b"text", "in-commit.bin": b"\0one"})
        oid = send_large(ada, "ada/tiny", b"\0two")
        value = {"path": "sent.bin", "algo": "sha256", "oid": oid, "size": 4}
        assert send_lines(ada, "ada/tiny", ("lfsFile", value)).status_code == 200
        files = dict.fromkeys(("a.txt", "in-commit.bin", "sent.bin", "new.txt"), 4)
        blob = {
            content: hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()
            for content in (b"text", b"\0one")
        }
        found = preupload(ada, files)
        assert found["a.txt"]["oid"] == blob[b"text"]
        assert found["in-commit.bin"]["oid"] == hashlib.sha256(b"\0one").hexdigest()
        assert found["sent.bin"]["oid"] == oid
        assert "oid" not in found["new.txt"]
        by_rules = preupload(ada, files, gitAttributes="")
        assert by_rules["in-commit.bin"]["oid"] == blob[b"\0one"], "the id of the mode that is answered"
        assert "oid" not in by_rules["sent.bin"], "its id in git is not known"


def test_ignored_files_are_reported(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        files = dict.fromkeys(("a.log", "keep.log", "build/x", "src/build/y", "src/a.tmp", "a.txt"), 1)

        def ignored(**more: str) -> set[str]:
            return {path for path, file in preupload(ada, files, **more).items() if file["shouldIgnore"]}

        assert ignored() == set()
        rules = "# comment\n*.log\n!keep.log\n/build\nsrc/*.tmp\n"
        assert ignored(gitIgnore=rules) == {"a.log", "build/x", "src/a.tmp"}
        assert send_lines(ada, "ada/tiny", text_file(".gitignore", "build/\n")).status_code == 200
        assert ignored() == {"build/x", "src/build/y"}
        assert ignored(gitIgnore="") == set()


def test_invalid_requests_are_rejected(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        create_repo(owner, "tiny")
        address, body = "/api/models/ada/tiny/preupload/", {"files": [{"path": "a", "size": 1, "sample": ""}]}
        for rev in ("nowhere", "0" * 40, "refs%2Fpr%2F1"):
            refused = owner.post(address + rev, json=body)
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound"), rev
        missing = owner.post("/api/models/ada/none/preupload/main", json=body)
        assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")
        assert [client.post(f"{address}main", json=body).status_code for client in (other, anyone)] == [403, 401]
        assert other.post(f"{address}main?create_pr=1", json=body).status_code == 200
        for bad in ({}, {"files": 1}, {"files": [{"size": 1}]}, {"files": [{"path": "a", "size": -1}]}):
            assert owner.post(f"{address}main", json=bad).status_code == 422, bad
        many = {"files": [{"path": f"f{number}", "size": 1} for number in range(20_000)]}
        assert owner.post(f"{address}main", json=many).status_code == 422


def test_slow_patterns_take_linear_time(hub: RunningHub) -> None:
    """A pattern with many stars must not take longer than its length justifies, nor delay others."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        slow = "*a" * 60 + "b", "**/a" * 40 + "/b", "[" * 200, "a**" * 50 + "b", "?*" * 60 + "b"
        files = {"a" * 250: 1, "/".join("a" * 90): 1}
        said = preupload(
            ada, files, gitIgnore="\n".join(slow), gitAttributes="\n".join(f"{p} filter=lfs" for p in slow)
        )
        assert {file["uploadMode"] for file in said.values()} == {"regular"}
        create_commit(ada, "ada/tiny", {".gitattributes": "\n".join(f"{p} filter=lfs" for p in slow).encode()})
        create_commit(ada, "ada/tiny", dict.fromkeys(files, b"x"))


@pytest.mark.limits(matching_seconds=0.3)
def test_too_many_rules_are_rejected(sqlite_hub: RunningHub) -> None:
    """Many rules for many long paths would take hours: the request is rejected, and nobody else waits."""
    rules = [f"{'ab*' * 40}{'?' * (number % 7)}c" for number in range(1500)]
    attributes = "\n".join(f"{rule} filter=lfs" for rule in rules)
    paths = ["/".join(["ab" * 60] * 30) + f"/{number}{'ab' * 100}" for number in range(1500, 1900)]
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada, api(sqlite_hub) as nobody:
        create_repo(ada, "tiny")
        given = {"files": [{"path": path, "size": 1} for path in paths]}
        address = "/api/models/ada/tiny/preupload/main?create_pr=1"
        for slow in ({"gitAttributes": attributes}, {"gitIgnore": "/\n".join(rules)}):
            answer = ada.post(address, json={**given, **slow})
            assert (answer.status_code, "too long" in answer.text) == (422, True), answer.text
        assert nobody.post(address, json=given).status_code == 401
        files = {".gitattributes": attributes.encode(), **dict.fromkeys(paths[:90], b"x")}
        assert send_commit(ada, "ada/tiny", files).status_code == 422
        said = [{"path": path, "content": content.decode()} for path, content in files.items()]
        assert ada.post("/api/repos/create", json={"name": "slow", "files": said}).status_code == 422
        # The same files with the default rules of a repo are accepted.
        create_commit(ada, "ada/tiny", dict.fromkeys((f"{path}.{n}" for path in paths[:50] for n in range(20)), b"x"))


def test_rule_for_an_odd_file_name_is_added_once(hub: RunningHub) -> None:
    """Spaces and pattern characters are escaped so that all readers understand them."""
    names = ["my big file.txt", "what?[1]*.txt", "#x.txt", "é.txt", "a\u00a0b.txt", '"quoted".txt', "!x.txt"]
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        before = len(ada.get("/ada/tiny/resolve/main/.gitattributes").text.splitlines())
        oid = send_large(ada, "ada/tiny", b"large")
        for path in (*names, *names):
            value = {"path": path, "algo": "sha256", "oid": oid, "size": 5}
            assert send_lines(ada, "ada/tiny", ("lfsFile", value)).status_code == 200
        rules = ada.get("/ada/tiny/resolve/main/.gitattributes").text.splitlines()
        assert len(rules) == before + len(names), rules[before:]
        said = modes(preupload(ada, {**dict.fromkeys(names, 1), "what1.txt": 1, "myXbigXfile.txt": 1, "x.txt": 1}))
        assert {path for path, mode in said.items() if mode == "lfs"} == set(names)
