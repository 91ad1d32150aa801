"""The lines of a commit, one kind after the other, and malformed bodies."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import (
    create_commit,
    create_repo,
    head_of,
    paths_in,
    send_body,
    send_commit,
    send_large,
    send_lines,
    text_file,
)
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

HEADER = b'{"key": "header", "value": {"summary": "x"}}\n'


def test_every_kind_of_line_works(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", b"\0large")
        encoded = {"path": "b", "content": base64.b64encode(b"\0\xff").decode(), "encoding": "base64"}
        large: dict[str, Any] = {"path": "w.bin", "algo": "sha256", "oid": oid, "size": 6}
        first = send_lines(ada, "ada/tiny", text_file("t", "é"), ("file", encoded), ("lfsFile", large))
        assert first.json().keys() == {"success", "commitOid", "commitUrl", "hookOutput"}
        assert first.json()["commitUrl"] == f"{hub.url}/ada/tiny/commit/{first.json()['commitOid']}"
        assert ada.get("/ada/tiny/resolve/main/t").text == "é"
        assert ada.get("/ada/tiny/resolve/main/b").content == b"\0\xff"
        # Copied (without its size), renamed, and one more of each to be deleted.
        copy = {"path": "copy.bin", "algo": "sha256", "oid": oid}
        moved = {**large, "path": "moved.bin", "oldPath": "w.bin"}
        lines = [("lfsFile", copy), ("lfsFile", moved), text_file("u", "new", oldPath="t"), text_file("dir/x/y")]
        assert send_lines(ada, "ada/tiny", *lines).status_code == 200
        assert paths_in(ada, "ada/tiny") == {"b", "copy.bin", "moved.bin", "u", "dir/x/y"}
        deletions = [
            ("deletedFile", {"path": "b"}),
            ("deletedFolder", {"path": "dir/"}),
            ("deletedEntry", {"path": "u"}),
        ]
        assert send_lines(ada, "ada/tiny", *deletions).status_code == 200
        assert paths_in(ada, "ada/tiny") == {"copy.bin", "moved.bin"}
        assert ada.get("/ada/tiny/resolve/main/copy.bin").content == b"\0large"
        for line in (
            ("deletedFile", {"path": "none"}),
            ("deletedFile", {"path": "none/"}),
            ("deletedFolder", {"path": "copy.bin"}),
            text_file("a", oldPath="no"),
        ):
            refused = send_lines(ada, "ada/tiny", line)
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "EntryNotFound"), line
        other = send_lines(ada, "ada/tiny", ("copyFile", {"path": "x", "srcPath": "copy.bin"}))
        assert other.status_code == 422, "a client copies a large file by its hash"


def test_file_replaces_a_folder_only_if_the_commit_deletes_it(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")

        def after(*lines: tuple[str, dict[str, Any]]) -> set[str] | int:
            answer = send_lines(ada, "ada/tiny", *lines)
            return paths_in(ada, "ada/tiny") if answer.status_code == 200 else answer.status_code

        assert after(text_file("a"), text_file("d/x"), text_file("d/y")) == {"a", "d/x", "d/y"}
        # A file in place of a folder, and vice versa: only if the commit deletes the old one.
        assert after(text_file("d")) == 422
        assert after(text_file("a/b")) == 422
        assert after(("deletedFolder", {"path": "d"}), text_file("d")) == {"a", "d"}
        assert after(("deletedFile", {"path": "a"}), text_file("a/b")) == {"a/b", "d"}
        assert after(("deletedEntry", {"path": "a/b"}), text_file("a")) == {"a", "d"}
        assert after(("deletedFile", {"path": "d"}), text_file("d", "again")) == {"a", "d"}
        assert after(text_file("e/x"), text_file("e/y")) == {"a", "d", "e/x", "e/y"}
        assert after(("deletedFolder", {"path": "e"}), text_file("e/z")) == {"a", "d", "e/z"}
        assert after(("deletedFolder", {"path": "e"}), ("deletedFile", {"path": "e/z"})) == {"a", "d"}
        assert after(text_file("f/x"), text_file("f/g/y")) == {"a", "d", "f/x", "f/g/y"}
        assert after(("deletedFile", {"path": "f/g"})) == {"a", "d", "f/x"}
        assert after(("deletedFile", {"path": "f/"})) == {"a", "d"}
        # These are ambiguous.
        for lines in (
            (text_file("q"), text_file("q")),
            (text_file("q"), text_file("q/r")),
            (text_file("q/r"), text_file("q")),
            (text_file("q"), ("deletedFile", {"path": "q"})),
            (text_file("e/q"), ("deletedFolder", {"path": "e"})),
            (("deletedFile", {"path": "a"}), ("deletedFile", {"path": "a"})),
        ):
            assert after(*lines) == 422, lines
        assert after() == {"a", "d"}, "an empty commit is one"
        assert len(ada.get("/api/models/ada/tiny/commits/main?limit=100").json()) == 13
        assert after(("deletedFile", {"path": "a"}), ("deletedFile", {"path": "d"})) == set()


def test_header_line_is_validated(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = head_of(ada, "ada/tiny")

        def status(**header: Any) -> int:
            return send_lines(ada, "ada/tiny", ("header", header), text_file("f", str(header))).status_code

        assert status(summary="é\n\nx", description="why", parentCommit=sha[:7]) == 200
        (newest, *_) = ada.get("/api/models/ada/tiny/commits/main").json()
        assert (newest["title"], newest["message"]) == ("é", "x\n\nwhy")
        assert status(summary="x", parentCommit=sha) == 412
        assert status(summary="x", parentCommit=None, description=None) == 200
        for bad in (
            {}, {"summary": ""}, {"summary": " \n"}, {"summary": 1}, {"summary": "x" * 2000}, {"summary": "a\0b"},
            {"summary": "x", "description": 1}, {"summary": "x", "description": "a\0b"},
            {"summary": "x", "parentCommit": "main"}, {"summary": "x", "parentCommit": ""},
            {"summary": "x", "parentCommit": 7},
        ):  # fmt: skip
            assert status(**bad) == 422, bad
        # The header may be last, but only once.
        assert send_body(ada, "ada/tiny", _line("file", path="last", content="") + b"\n" + HEADER).status_code == 200
        assert send_body(ada, "ada/tiny", HEADER + HEADER).status_code == 400
        for rev, expected in (
            ("nowhere", 404),
            (sha, 404),
            ("refs/pr/1", 404),
            ("refs/heads/main", 200),
            ("HEAD", 200),
        ):
            assert send_commit(ada, "ada/tiny", {"f": b"x"}, rev=rev).status_code == expected, rev


def _line(key: str, **value: Any) -> bytes:
    return json.dumps({"key": key, "value": value}).encode()


def _long(end: bytes) -> bytes:
    return HEADER + b'{"key": "file", "value": {"content": "' + b"A" * 70_000 + end + b'", "path": "a"}}'


_PAD = "x" * 40_000
_PADDED = "A" * 69_996 + "QQ==" + "AAAA"
BODIES: dict[str, tuple[bytes, int]] = {
    "nested": (HEADER + b'{"key": "file", "value": {"x": ' + b"[" * 25_000 + b"]" * 25_000 + b"}}", 400),
    "half a character": (HEADER + b'{"key": "file", "value": {"path": "\\ud800", "content": ""}}', 400),
    "not UTF-8": (HEADER + b'{"key": "file", "value": {"path": "\xff", "content": ""}}', 400),
    "a huge number": (HEADER + _line("lfsFile", path="a", algo="sha256", oid="0" * 64, size=10**30), 422),
    "a negative size": (HEADER + _line("lfsFile", path="a", algo="sha256", oid="0" * 64, size=-1), 422),
    "another hash": (HEADER + _line("lfsFile", path="a", algo="md5", oid="0" * 64, size=1), 422),
    "not uploaded": (HEADER + _line("lfsFile", path="a", algo="sha256", oid="0" * 64, size=1), 422),
    "value is a list": (HEADER + b'{"key": "file", "value": []}', 400),
    "an array": (HEADER + b"[1, 2]", 400),
    "cut off": (HEADER + b'{"key": "file", "value": {"path": "a", "cont', 400),
    "cut off in a long line": (HEADER + b'{"key": "file", "value": {"content": "' + b"A" * 100_000 + b"\\", 400),
    "cut off after the content": (HEADER + b'{"key": "file", "value": {"content": "' + b"A" * 100_000 + b'"', 400),
    "a long line, newline inside": (_long(b"\nA"), 400),
    "a long line, not UTF-8": (_long(b"\xff"), 400),
    "a long line, bad escape": (_long(b"\\x"), 400),
    "a long line, half a pair": (_long(b"\\ud83d"), 400),
    "a long line, padding inside": (HEADER + _line("file", path="a", encoding="base64", content=_PADDED), 422),
    "a long line, not base64": (HEADER + _line("file", path="a", encoding="base64", content="A" * 70_001), 422),
    "a long line, odd encoding": (HEADER + _line("file", path="a", encoding="utf-16", content="A" * 70_000), 422),
    "a long tail": (HEADER + _line("file", content="A" * 70_000, path="a", x="A" * 70_000), 400),
    "a long header": (_line("header", summary="x", description="A" * 70_000), 400),
    "no path": (HEADER + _line("file", content="A" * 70_000), 422),
    "content is a number": (HEADER + _line("file", path="a", content=1), 422),
    "an unknown line": (HEADER + _line("copyFile", path="a", content="x"), 422),
}  # fmt: skip


def test_malformed_bodies_are_rejected(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = head_of(ada, "ada/tiny")
        for name, (body, status) in BODIES.items():
            answer = send_body(ada, "ada/tiny", body)
            assert answer.status_code == status, (name, answer.text)
            assert answer.json()["error"], name
        assert head_of(ada, "ada/tiny") == sha
        assert list((hub.settings.data_dir / "lfs/incoming").glob("*")) == []
        assert len(ada.get("/api/models/ada/tiny/events").json()) == 1


def test_long_line_around_an_empty_file_is_accepted(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        body = (
            HEADER
            + json.dumps(
                {
                    "key": "file",
                    "value": {"pad": _PAD, "content": "", "more": _PAD, "path": "empty", "encoding": "base64"},
                }
            ).encode()
        )
        assert send_body(ada, "ada/tiny", body).status_code == 200
        assert ada.get("/ada/tiny/resolve/main/empty").content == b""


def test_description_of_the_maximum_length_is_accepted(sqlite_hub: RunningHub) -> None:
    """Characters are counted, not the up to twelve bytes of an escaped one."""
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for letter in ("d", "ü", "😀"):
            header = {"summary": letter * 1_000, "description": letter * 65_536}
            assert send_lines(ada, "ada/tiny", ("header", header), text_file("f", letter)).status_code == 200
            (newest, *_) = ada.get("/api/models/ada/tiny/commits/main").json()
            assert newest["message"] == letter * 65_536
            # Also after the files, with its members in another order.
            line = json.dumps({"value": header, "key": "header"}).encode()
            body = _line("file", path="g", content=letter) + b"\n" + line + b"\n" + _line("file", path="h", content="")
            assert send_body(ada, "ada/tiny", body).status_code == 200
            for lines in (
                [("header", {"summary": "x", "description": letter * 65_537})],
                [("header", {"summary": "x", "more": letter * 900_000})],
                [("file", {"path": "f", "more": letter * 65_536, "content": ""})],
                [("header", header), ("header", header)],
            ):
                assert send_lines(ada, "ada/tiny", *lines).status_code == 400, (letter, lines[0][0])


def test_long_text_of_escapes_is_accepted(sqlite_hub: RunningHub) -> None:
    """Wherever the network splits it: the halves of a surrogate pair stay together."""
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for before in range(4):
            text = "x" * before + "😀" * 40_000 + "\\ud83d" * 40_000
            assert send_lines(ada, "ada/tiny", text_file("f", text)).status_code == 200, before
            assert ada.get("/ada/tiny/resolve/main/f").text == text


def test_too_large_commit_is_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, regular_upload_max="150000")) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as ada:
            create_repo(ada, "tiny")
            assert send_commit(ada, "ada/tiny", {"f": b"x" * 150_000}).status_code == 200
            escaped = json.dumps({"key": "file", "value": {"path": "g", "content": "\u0001" * 150_000}}).encode()
            assert send_body(ada, "ada/tiny", HEADER + escaped).status_code == 200
            for more in (1, 100_000, 1_000_000):
                refused = send_commit(ada, "ada/tiny", {"f": b"x" * (150_000 + more)})
                assert (refused.status_code, "150,000 bytes" in refused.json()["error"]) == (413, True), more
                assert send_lines(ada, "ada/tiny", text_file("f", "x" * (150_000 + more))).status_code == 413
            asked = {
                "files": [{"path": "f", "size": 150_001, "sample": ""}, {"path": "g", "size": 150_000, "sample": ""}]
            }
            said = ada.post("/api/models/ada/tiny/preupload/main", json=asked).json()
            assert [file["uploadMode"] for file in said["files"]] == ["lfs", "regular"]
            assert list((hub.settings.data_dir / "lfs/incoming").glob("*")) == []


def test_many_small_files_are_not_buffered_in_memory(sqlite_hub: RunningHub) -> None:
    """Beyond a few megabytes the body is stored on disk."""
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        files = {f"f{number:03}": b"%d" % number * 20_000 for number in range(150)}
        create_commit(ada, "ada/tiny", files)
        for name in ("f000", "f075", "f149"):
            assert ada.get(f"/ada/tiny/resolve/main/{name}").content == files[name]
        assert len(paths_in(ada, "ada/tiny")) == 150
        assert list((hub.settings.data_dir / "lfs/incoming").glob("*")) == []
