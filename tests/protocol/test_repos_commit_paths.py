"""Unusual paths and trees are rejected clearly, or stored exactly as they are."""

import unicodedata
from urllib.parse import quote

import pygit2
import pytest
from tests.bed import packs
from tests.bed.on_disk import write_objects
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_commit, send_lines, text_file
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

REFUSED = (
    "", "/", "/etc/passwd", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", "a/./b", "a\\b", "..\\a",
    "C:\\a",
    ".git", ".git/config", "a/.git/x", ".GIT/config", ".Git", ".git ", ".git.", ".git . .", ".git::$INDEX_ALLOCATION/x",
    "git~1", "GIT~1/config", "git~2", ".g\u200cit", ".g\u200cit/config", ".gi\ufefft/x", "\u200d.git", ".git\u202e",
    "a\0b", "a\nb", "a\rb", "a\tb", "\x7f", "a\x1fb", "x" * 256, "é" * 128, "a/" * 101 + "b",
    "/".join(["x" * 250] * 17),
)  # fmt: skip

KEPT = (
    # Case and Unicode form are not folded: git distinguishes them, and so do most disks.
    "Readme", "readme", "README", "dir/a", "Dir/a",
    unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café"),
    "x" * 255, "é" * 127, "a/" * 100 + "b", ".gitignore", ".github/x", "a.git/x", "git~", "git~x", "..a", "a..", "...",
    "a.", "a ", " a", "aux", "nul.txt", "a:b", "a*?b", "-x", "~", "$(x)", "\u202ex", "a\u200cb", "%2e%2e", "😀",
)  # fmt: skip


def test_paths_outside_a_checkout_are_rejected(sqlite_hub: RunningHub) -> None:
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"here": b""})
        sha = head_of(ada, "ada/tiny")
        for path in REFUSED:
            given = [
                [text_file(path)],
                [text_file("good"), ("lfsFile", {"path": path, "algo": "sha256", "oid": "0" * 64})],
                [text_file("good", oldPath=path)],
            ]
            if not path.endswith("/"):
                given += [[(kind, {"path": path})] for kind in ("deletedFile", "deletedFolder", "deletedEntry")]
            for lines in given:
                assert send_lines(ada, "ada/tiny", *lines).status_code == 422, (path, lines)
            asked = {"files": [{"path": "good", "size": 1}, {"path": path, "size": 1}]}
            assert ada.post("/api/models/ada/tiny/preupload/main", json=asked).status_code == 422, path
            files = [{"path": path, "content": "x"}]
            made = ada.post("/api/repos/create", json={"name": "other", "files": files})
            assert made.status_code == 422, path
        assert head_of(ada, "ada/tiny") == sha
        assert ada.get("/api/models/ada/other").status_code == 404
        folders = list((hub.settings.data_dir / "repos").glob("??/*"))
        assert len(folders) == 1, "what was half made is gone"


def test_odd_paths_are_stored_unchanged(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {path: path.encode() for path in KEPT})
        assert paths_in(ada, "ada/tiny") == set(KEPT)
        for path in KEPT:
            got = ada.get(f"/ada/tiny/resolve/main/{quote(path, safe='')}")
            assert (got.status_code, got.content) == (200, path.encode()), path
        create_commit(ada, "ada/tiny", {}, delete=["readme"])
        assert paths_in(ada, "ada/tiny") == set(KEPT) - {"readme"}


def test_pushed_symlinks_and_submodules_are_not_followed(hub: RunningHub) -> None:
    """Nothing can be added below either."""
    token = create_token(hub, create_user(hub, "ada"))
    target, elsewhere = packs.blob(b"/etc/passwd"), packs.commit("0" * 40)
    script = packs.blob(b"#!/bin/sh\n")
    root = packs.tree(
        ("120000", "link", target), ("100755", "run.sh", script), ("160000", "sub", elsewhere), ("120000", "up", target)
    )
    head = packs.commit(root)
    with api(hub, token) as ada:
        create_repo(ada, "tiny")
        body = packs.commands([(None, head.sha, "refs/heads/odd")]) + packs.pack([target, script, root, head])
        assert packs.report_of(packs.push(hub.url, token, body)) == ["unpack ok", "ok refs/heads/odd"]
        assert ada.get("/ada/tiny/resolve/odd/link").content == b"/etc/passwd"
        assert ada.get("/ada/tiny/raw/odd/link").content == b"/etc/passwd"
        for path in ("link/x", "sub", "sub/x", "up/../../x"):
            assert ada.get(f"/ada/tiny/resolve/odd/{quote(path)}").status_code == 404, path
            assert ada.get(f"/api/models/ada/tiny/tree/odd/{quote(path)}").status_code == 404, path
        listed = ada.get("/api/models/ada/tiny/tree/odd?recursive=1&expand=1")
        assert [one["path"] for one in listed.json()] == ["link", "run.sh", "up"]
        assert len(ada.get("/api/models/ada/tiny/revision/odd?blobs=1").json()["siblings"]) == 3
        for path in ("link/x", "sub/x", "run.sh/x"):
            refused = send_commit(ada, "ada/tiny", {path: b"x"}, rev="odd")
            assert (refused.status_code, "is a file" in refused.json()["error"]) == (422, True), path
        create_commit(ada, "ada/tiny", {"link": b"now a file", "run.sh": b"#!/bin/sh\necho\n"}, rev="odd")
        create_commit(ada, "ada/tiny", {}, delete=["sub"], rev="odd")
        assert ada.get("/ada/tiny/resolve/odd/link").content == b"now a file"
        assert _modes(hub, ada.get("/api/models/ada/tiny").json()["_id"], head_of(ada, "ada/tiny", "odd")) == {
            "link": 0o100644,
            "run.sh": 0o100755,
            "up": 0o120000,
        }


def test_odd_paths_in_a_repo_can_be_deleted_and_renamed(sqlite_hub: RunningHub) -> None:
    """git still accepts some of them in a push; others were pushed to an older version."""
    hub = sqlite_hub
    text, elsewhere = packs.blob(b"text"), packs.commit("0" * 40)
    below = packs.tree(("100644", "a", text), ("100644", "b\\", text))
    root = packs.tree(
        ("100644", "a\nb", text), ("100644", "back\\slash", text), ("40000", "fol\\der", below),
        ("160000", "sub\\module", elsewhere), ("100644", "tab\t", text),
    )  # fmt: skip
    head = packs.commit(root)
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        write_objects(hub, ada, "ada/tiny", [text, below, root, head])
        assert ada.post("/api/models/ada/tiny/branch/odd", json={"startingPoint": head.sha}).status_code == 200
        for lines in (
            [("deletedFile", {"path": "no\\thing"})],
            [("deletedFile", {"path": "back\\slash"}), ("deletedEntry", {"path": "no\nthing"})],
            [text_file("good", oldPath="no\\thing")],
            [text_file("fol\\der/c")],
            [("deletedFile", {"path": "fol\\der/../a\nb"})],
            [("deletedFile", {"path": "fol\\der//a"})],
            [("deletedFile", {"path": "back\\slash\0"})],
        ):
            assert send_lines(ada, "ada/tiny", *lines, rev="odd").status_code == 422, lines
        missing = send_lines(ada, "ada/tiny", ("deletedFolder", {"path": "back\\slash"}), rev="odd")
        assert (missing.status_code, missing.headers["x-error-code"]) == (404, "EntryNotFound")
        lines = [
            ("deletedFile", {"path": "back\\slash"}), ("deletedEntry", {"path": "a\nb"}),
            ("deletedFile", {"path": "fol\\der/b\\"}),
            ("deletedEntry", {"path": "sub\\module"}), text_file("tab", oldPath="tab\t"),
        ]  # fmt: skip
        assert send_lines(ada, "ada/tiny", *lines, rev="odd").status_code == 200
        assert paths_in(ada, "ada/tiny", "odd") == {"fol\\der/a", "tab"}
        assert send_lines(ada, "ada/tiny", ("deletedFolder", {"path": "fol\\der"}), rev="odd").status_code == 200
        assert paths_in(ada, "ada/tiny", "odd") == {"tab"}


def _modes(hub: RunningHub, repo_id: str, sha: str) -> dict[str, int]:
    repo = pygit2.Repository(str(hub.settings.data_dir / "repos" / repo_id[-2:] / f"{repo_id}.git"))
    commit_object = repo[sha]
    assert isinstance(commit_object, pygit2.Commit)
    return {str(item.name): int(item.filemode) for item in commit_object.tree}


def test_dangerous_submodules_are_rejected(sqlite_hub: RunningHub) -> None:
    """What git fsck rejects in a push (CVE-2018-11235, CVE-2018-17456) is rejected here too."""
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for text in (
            '[submodule "../../x"]\n\tpath = x\n\turl = https://example.org/x\n',
            '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n',
            '[submodule "x"]\n\tpath = -x\n\turl = https://example.org/x\n',
            '[submodule "x"]\n\tpath = x\n\turl = "-u./payload"\n\tupdate = !touch /tmp/x\n',
            '[submodule "x"]\n\turl = https://example.org/x\n\tupdate=!touch\n',
        ):
            for path in (".gitmodules", ".GitModules"):
                assert send_lines(ada, "ada/tiny", text_file(path, text)).status_code == 422, (path, text)
            assert send_lines(ada, "ada/tiny", text_file("docs/.gitmodules", text)).status_code == 200
        # Not beyond the part that is checked, either.
        hidden = "# comment\n" * 110_000 + '[submodule "../../x"]\n\tpath = x\n\turl = https://example.org/x\n'
        assert send_lines(ada, "ada/tiny", text_file(".gitmodules", hidden)).status_code == 422
        good = '[submodule "deps/x"]\n\tpath = deps/x\n\turl = ../x.git\n\tupdate = rebase\n'
        assert send_lines(ada, "ada/tiny", text_file(".gitmodules", good)).status_code == 200
