"""`/compare/{revisions}`: what changed between two revisions."""

from hashlib import sha1

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_large, send_lines
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.git.objects import pointer_text

pytestmark = pytest.mark.one_engine

COMPARE = "/api/models/ada/tiny/compare"
NOTHING = "0" * 40


def blob(content: bytes) -> str:
    return sha1(b"blob %d\0" % len(content) + content).hexdigest()


def text_of(client: httpx.Client, revisions: str) -> str:
    answer = client.get(f"{COMPARE}/{revisions}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    return answer.text


def test_changes_between_revisions_as_git_prints_them(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        first = create_commit(ada, "ada/tiny", {"a.txt": b"one\n", "b.txt": b"two\n"})
        ada.post("/api/models/ada/tiny/branch/next%2Fone").raise_for_status()
        create_commit(ada, "ada/tiny", {"a.txt": b"changed\n"}, rev="next/one")
        create_commit(ada, "ada/tiny", {"c.txt": b"on main\n"})

        changed = text_of(ada, "main..next%2Fone")
        assert "-one\n+changed\n" in changed
        assert "-on main\n" in changed, "both sides count"
        assert changed == text_of(ada, "main..next/one")
        since = text_of(ada, "main...next%2Fone")
        assert "+changed\n" in since
        assert "on main" not in since, "from the merge base"
        assert since == text_of(ada, "next%2Fone"), "one revision is compared with its parent"
        assert text_of(ada, "main..main") == ""
        initial = ada.get("/api/models/ada/tiny/commits/main").json()[-1]["id"]
        assert "+++ b/.gitattributes\n" in text_of(ada, initial), "the first commit has no parent"
        assert "+two\n" in text_of(ada, f"{initial[:8]}..{first[:8]}")


def test_changed_files_in_the_raw_format(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        old = create_commit(ada, "ada/tiny", {"a b ü.txt": b"one\n", "gone.txt": b"old text\n"})
        oid, binary = send_large(ada, "ada/tiny", b"0123456789" * 2), b"\0\1\2"
        send_lines(
            ada,
            "ada/tiny",
            ("lfsFile", {"path": "w.bin", "algo": "sha256", "oid": oid, "size": 20}),
            ("file", {"path": "a b ü.txt", "content": "changed\n", "encoding": "utf-8"}),
            ("file", {"path": "x.dat", "content": "AAEC", "encoding": "base64"}),
            ("deletedFile", {"path": "gone.txt"}),
        ).raise_for_status()
        one, changed, text = map(blob, (b"one\n", b"changed\n", b"old text\n"))
        pointer = blob(pointer_text(oid, 20))
        expected = [
            f"T 8\t:100644 100644 {one}... {changed}... M\ta b ü.txt",
            f"T 9\t:100644 000000 {text}... {NOTHING}... D\tgone.txt",
            f"T 20\t:000000 100644 {NOTHING}... {pointer}... A\tw.bin",
            f"B 3\t:000000 100644 {NOTHING}... {blob(binary)}... A\tx.dat",
        ]
        for revisions in (f"{old}..main", "main"):
            assert text_of(ada, f"{revisions}?raw=true").splitlines() == expected
        initial = ada.get("/api/models/ada/tiny/commits/main").json()[-1]["id"]
        (only,) = text_of(ada, f"{initial}?raw=true").splitlines()
        assert only.endswith("... A\t.gitattributes")


def test_unknown_revisions_are_not_found(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for revisions in ("nowhere", "main..nowhere", "nowhere..main", "..main", "main..", "main....main", "0" * 40):
            refused = ada.get(f"{COMPARE}/{revisions}")
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound"), revisions
        ada.post("/api/models/ada/tiny/branch/empty", json={"emptyBranch": True}).raise_for_status()
        assert "-" in text_of(ada, "main..empty")
        refused = ada.get(f"{COMPARE}/main...empty")
        assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")


def test_changes_are_behind_the_gate(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        ada.put("/api/models/ada/tiny/settings", json={"gated": "manual"}).raise_for_status()
        with api(hub) as anyone, api(hub, create_token(hub, create_user(hub, "bob"))) as bob:
            for client, status in ((anyone, 401), (bob, 403)):
                for query in ("", "?raw=true"):
                    refused = client.get(f"{COMPARE}/main{query}")
                    assert (refused.status_code, refused.headers["x-error-code"]) == (status, "GatedRepo")
