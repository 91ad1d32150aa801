"""`.gitattributes` after commits: every large file has a rule; without one, clones would contain pointers."""

import base64
from functools import partial
from typing import Any

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large, send_lines, text_file
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.commits.attributes import line_for
from hubgate.server.hub.commits.model import LARGE_FILE_BYTES
from hubgate.server.hub.git.objects import pointer_text

pytestmark = pytest.mark.one_engine

CONTENT = b"\0large"


def large(path: str, oid: str) -> tuple[str, dict[str, Any]]:
    return "lfsFile", {"path": path, "algo": "sha256", "oid": oid, "size": len(CONTENT)}


def rules(client: httpx.Client, repo: str = "ada/tiny", path: str = ".gitattributes") -> list[str]:
    return client.get(f"/{repo}/resolve/main/{path}").text.splitlines()


def test_concurrent_commits_add_rules_for_all_their_large_files(hub: RunningHub) -> None:
    """Each adds its line to the others', and to an edit by the user."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        names = [f"w{number}.dat" for number in range(12)]
        answers = run_concurrently([partial(send_lines, ada, "ada/tiny", large(name, oid)) for name in names])
        assert [answer.status_code for answer in answers] == [200] * 12
        assert {line_for(name) for name in names} <= set(rules(ada))
        edit = {".gitattributes": b"*.mine filter=lfs\n"}
        more = [partial(send_lines, ada, "ada/tiny", large(f"more/{name}", oid)) for name in names]
        answers = run_concurrently([partial(send_commit, ada, "ada/tiny", edit), *more])
        assert [answer.status_code for answer in answers] == [200] * 13
        assert rules(ada)[0] == "*.mine filter=lfs"


def test_file_with_more_rules_than_are_evaluated_loses_none(sqlite_hub: RunningHub) -> None:
    """Rules are evaluated up to a limit; the whole file is retained, and no line is added twice."""
    own = ["*.own filter=lfs", *(f"/a/long/path/number-{number:06d}.xyz filter=lfs -text" for number in range(25_000))]
    text = "\r\n".join(own).encode()
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        create_commit(ada, "ada/tiny", {".gitattributes": text})
        for _ in range(2):
            assert send_lines(ada, "ada/tiny", large("late.dat", oid), large("b.own", oid)).status_code == 200
            assert rules(ada) == [*own, line_for("late.dat")]
        create_commit(ada, "ada/tiny", {"c.own": b"\0small"})
        assert ada.get("/ada/tiny/raw/main/c.own").text.startswith("version https://git-lfs"), "the first rules count"
        # In one commit with a file that needs a rule.
        encoded = base64.b64encode(text).decode()
        given = "file", {"path": ".gitattributes", "content": encoded, "encoding": "base64"}
        assert send_lines(ada, "ada/tiny", large("same.dat", oid), given).status_code == 200
        assert rules(ada) == [*own, line_for("same.dat")]


def test_overridden_rule_is_added_once(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        own = [line_for("a.dat"), "*.dat !filter", "# *.dat filter=lfs", "*.txt text"]
        create_commit(ada, "ada/tiny", {".gitattributes": "\n".join(own).encode()})
        for _ in range(2):
            assert send_lines(ada, "ada/tiny", large("a.dat", oid)).status_code == 200
            assert rules(ada) == [*own, line_for("a.dat")]


def test_file_too_large_to_extend_is_not_changed(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        text = b"#" * (LARGE_FILE_BYTES - 10)
        create_commit(ada, "ada/tiny", {".gitattributes": text})
        given = "file", {"path": ".gitattributes", "content": text.decode()}
        for lines in ([large("a.dat", oid)], [given, large("a.dat", oid)]):
            refused = send_lines(ada, "ada/tiny", *lines)
            assert (refused.status_code, "pattern" in refused.json()["error"]) == (422, True), refused.text
        for lines in (
            [large(".gitattributes", oid)],
            [("file", {"path": ".gitattributes", "content": "#" * (LARGE_FILE_BYTES + 1)})],
            [("file", {"path": ".gitattributes", "content": pointer_text(oid, len(CONTENT)).decode()})],
        ):
            refused = send_lines(ada, "ada/tiny", *lines)
            assert (refused.status_code, "large file itself" in refused.json()["error"]) == (422, True), refused.text
        assert ada.get("/ada/tiny/resolve/main/.gitattributes").content == text


def test_gitattributes_is_never_stored_as_a_large_file(sqlite_hub: RunningHub) -> None:
    """git reads it from the tree, where there would be a pointer."""
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {".gitattributes": b"* filter=lfs\n", "d/.gitattributes": b"*.x -filter\n"})
        for path, text in ((".gitattributes", "* filter=lfs\n"), ("d/.gitattributes", "*.x -filter\n")):
            assert ada.get(f"/ada/tiny/raw/main/{path}").text == text
        files = [{"path": path, "size": 1} for path in (".gitattributes", "d/.gitattributes", "a")]
        said = ada.post("/api/models/ada/tiny/preupload/main", json={"files": files}).json()["files"]
        assert [file["uploadMode"] for file in said] == ["regular", "regular", "lfs"]


def test_rules_of_a_deleted_folder_no_longer_apply(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        oid = send_large(ada, "ada/tiny", CONTENT)
        for line in (
            ("deletedFolder", {"path": "a"}),
            ("deletedEntry", {"path": "a/b"}),
            ("deletedFile", {"path": "a/b/.gitattributes"}),
            text_file("a/b/rules", oldPath="a/b/.gitattributes"),
        ):
            create_commit(
                ada,
                "ada/tiny",
                {"a/b/.gitattributes": b"*.txt filter=lfs\n", "ab/.gitattributes": b"*.txt filter=lfs\n"},
            )
            lines = [line, text_file("a/b/c/x.txt", "small"), text_file("ab/x.txt", "small")]
            assert send_lines(ada, "ada/tiny", *lines).status_code == 200, line
            assert ada.get("/ada/tiny/raw/main/a/b/c/x.txt").text == "small", line
            assert ada.get("/ada/tiny/raw/main/ab/x.txt").text.startswith("version https://git-lfs"), line
        # Rules added by the same commit do.
        again = (
            ("deletedFolder", {"path": "a"}),
            text_file("a/.gitattributes", "*.md filter=lfs\n"),
            text_file("a/x.md"),
        )
        assert send_lines(ada, "ada/tiny", *again).status_code == 200
        assert ada.get("/ada/tiny/raw/main/a/x.md").text.startswith("version https://git-lfs")
        # The root's file is renamed: the files it covered get new rules.
        moved = text_file("rules", oldPath=".gitattributes")
        assert send_lines(ada, "ada/tiny", moved, large("w.bin", oid)).status_code == 200
        assert rules(ada) == [line_for("w.bin")]
