"""History, branches, tags and squashing over the API."""

from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, paths_in, send_commit
from tests.bed.running_hub import RunningHub

REPO = "/api/models/ada/tiny"


def names(client: httpx.Client, query: str = "") -> dict[str, list[str]]:
    return {kind: [ref["name"] for ref in refs] for kind, refs in client.get(f"{REPO}/refs{query}").json().items()}


def error(answer: httpx.Response) -> tuple[int, str, str]:
    return answer.status_code, answer.headers.get("x-error-code", ""), answer.json()["error"]


@pytest.mark.one_engine
def test_history_has_pages(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        made = [create_commit(ada, "ada/tiny", {"f": b"%d" % n}, summary=f"<b>{n}</b>\n\nand why") for n in range(4)]
        answer = ada.get(f"{REPO}/commits/main?limit=3")
        assert [one["id"] for one in answer.json()] == made[:0:-1]
        assert answer.headers["x-total-count"] == "5"
        assert answer.headers["link"].startswith(f"<{hub.url}{REPO}/commits/main?limit=3&cursor=")
        for last in (ada.get(answer.links["next"]["url"]), ada.get(f"{REPO}/commits/main?limit=3&p=1")):
            assert [one["title"] for one in last.json()] == ["<b>0</b>", "initial commit"]
            assert last.headers["x-total-count"] == "5"
            assert "link" not in last.headers
        newest: dict[str, Any] = answer.json()[0]
        assert (newest["title"], newest["message"]) == ("<b>3</b>", "and why")
        assert newest["authors"][0]["user"] == "ada"
        assert newest["authors"][0]["avatar"].startswith("/avatars/")
        assert newest["date"].endswith("Z")
        assert "formatted" not in newest
        for query in ("expand[]=formatted", "expand=formatted", "expand%5B%5D=formatted"):
            (shown,) = ada.get(f"{REPO}/commits/main?limit=1&{query}").json()
            assert shown["formatted"] == {"title": "&lt;b&gt;3&lt;/b&gt;", "message": "and why"}
        assert ada.get(f"{REPO}/commits/main?p=100").json() == []
        assert len(ada.get(f"{REPO}/commits/{made[0][:7]}").json()) == 2
        for query in ("limit=x", "p=-1", "p=9999999999", "limit=-5", "p=1.5", "p=101", "p=1&cursor=x"):
            assert ada.get(f"{REPO}/commits/main?{query}").status_code == 400
        for rev in ("nowhere", "main/f", "main/../x", "0" * 40, "zzz", "ffffff"):
            assert error(ada.get(f"{REPO}/commits/{rev}"))[:2] == (404, "RevisionNotFound"), rev


@pytest.mark.one_engine
def test_branches_are_created_and_deleted(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        first = head_of(ada, "ada/tiny")
        second = create_commit(ada, "ada/tiny", {"f": b"1"})
        assert ada.post(f"{REPO}/branch/dev").status_code == 200
        assert ada.post(f"{REPO}/branch/deep%2Fer", json={"startingPoint": first}).status_code == 200
        assert ada.post(f"{REPO}/branch/void", json={"emptyBranch": True}).status_code == 200
        assert head_of(ada, "ada/tiny", "dev") == second
        assert head_of(ada, "ada/tiny", "deep/er") == head_of(ada, "ada/tiny", first[:8]) == first
        assert ada.get(f"{REPO}/tree/void").json() == []
        gone = ada.get("/ada/tiny/resolve/void/f")
        assert (gone.status_code, gone.headers["x-error-code"]) == (404, "EntryNotFound")
        assert create_commit(ada, "ada/tiny", {"g": b""}, rev="void")
        again = ada.post(f"{REPO}/branch/dev", json={"startingPoint": first})
        assert error(again) == (409, "", "Reference refs/heads/dev already exists")
        assert ada.post(f"{REPO}/branch/dev", json={"startingPoint": first, "overwrite": True}).status_code == 200
        assert head_of(ada, "ada/tiny", "dev") == first
        assert error(ada.post(f"{REPO}/branch/x", json={"startingPoint": "nowhere"}))[:2] == (404, "RevisionNotFound")
        inside = error(ada.post(f"{REPO}/branch/dev%2Finside"))
        assert (inside[0], "refs/heads/dev" in inside[2]) == (409, True), "git cannot have both"
        assert names(ada)["branches"] == ["deep/er", "dev", "main", "void"]
        assert error(ada.delete(f"{REPO}/branch/main"))[2] == "Cannot delete refs/heads/main"
        assert ada.post(f"{REPO}/tag/main", json={"tag": "v1"}).status_code == 200
        for missing in ("nowhere", "v1", first):
            status, _, text = error(ada.delete(f"{REPO}/branch/{missing}"))
            assert (400 <= status < 500, "Invalid rev id" in text) == (True, True)
        assert ada.delete(f"{REPO}/branch/deep%2Fer").status_code == 200
        assert ada.delete(f"{REPO}/branch/dev").status_code == 200
        assert names(ada) == {"branches": ["main", "void"], "converts": [], "tags": ["v1"]}


@pytest.mark.one_engine
def test_unknown_revision_is_named_before_a_bad_tag_name(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        assert error(ada.post(f"{REPO}/tag/nowhere", json={"tag": "a b"}))[:2] == (404, "RevisionNotFound")
        assert ada.post(f"{REPO}/tag/main", json={"tag": "a b"}).status_code == 422


@pytest.mark.one_engine
def test_tags_may_be_plain_or_annotated(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        first = head_of(ada, "ada/tiny")
        second = create_commit(ada, "ada/tiny", {"f": b"1"})
        assert ada.post(f"{REPO}/tag/main", json={"tag": "v2", "message": "Two\n\n>From <x>"}).status_code == 200
        assert ada.post(f"{REPO}/tag/{first[:10]}", json={"tag": "v1"}).status_code == 200
        # At a tag, and with the name of a branch.
        assert ada.post(f"{REPO}/tag/v1", json={"tag": "main", "message": "Odd"}).status_code == 200
        found = {ref["name"]: ref["targetCommit"] for ref in ada.get(f"{REPO}/refs").json()["tags"]}
        assert found == {"main": first, "v1": first, "v2": second}, "a tag's commit, not the tag itself"
        assert head_of(ada, "ada/tiny", "v2") == head_of(ada, "ada/tiny", "main") == second
        assert head_of(ada, "ada/tiny", "refs/tags/main") == first
        assert error(ada.post(f"{REPO}/tag/main", json={"tag": "v1"}))[0] == 409
        assert error(ada.post(f"{REPO}/tag/nowhere", json={"tag": "v3"}))[:2] == (404, "RevisionNotFound")
        assert send_commit(ada, "ada/tiny", {"f": b""}, rev="v2").headers["x-error-code"] == "RevisionNotFound"
        assert ada.post(f"{REPO}/branch/dev").status_code == 200
        assert error(ada.delete(f"{REPO}/tag/dev"))[0] == 400
        assert error(ada.delete(f"{REPO}/tag/v9"))[:2] == (404, "RevisionNotFound")
        assert ada.delete(f"{REPO}/tag/main").status_code == 200
        assert head_of(ada, "ada/tiny") == second, "the branch of that name stays"


BAD_NAMES = (
    "a..b", "a b", "a~b", "a^b", "a:b", "a?", "a*", "a[b", "a\\b", "a@{b", "a.lock", "a.lock/b", ".a", "a/.b", "a.",
    "a//b", "/a", "a/", "-a", "@", "HEAD", "a\tb", "a\x7fb", "x" * 300, "é" * 150, "refs/heads/x", "refs/pr/1",
    "0123456789abcdef0123456789abcdef01234567",
)  # fmt: skip


def test_invalid_ref_names_are_rejected(sqlite_hub: RunningHub) -> None:
    """A branch with the name of a commit would be mistaken for that commit."""
    hub = sqlite_hub
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = head_of(ada, "ada/tiny")
        before = ada.get(f"{REPO}/refs").json()
        for name in (*BAD_NAMES, sha, sha.upper()):
            address = httpx.URL(f"{hub.url}{REPO}/branch/{_quoted(name)}")
            assert ada.post(address).status_code == 422, name
            assert ada.post(f"{REPO}/tag/main", json={"tag": name}).status_code == 422, name
        assert ada.post(f"{REPO}/tag/main", json={"tag": ""}).status_code == 422
        for body in ({"tag": 1}, {}, {"tag": "v", "message": "x" * 20_000}, {"tag": "a\0b"}):
            assert ada.post(f"{REPO}/tag/main", json=body).status_code == 422
        assert ada.get(f"{REPO}/refs").json() == before
        for accepted in ("é", "a-b_c.d", "deadbeef", "a@b", "feature/é/x"):
            assert ada.post(f"{REPO}/branch/{_quoted(accepted)}").status_code == 200, accepted
            assert head_of(ada, "ada/tiny", accepted) == sha


def _quoted(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


@pytest.mark.one_engine
def test_history_can_be_squashed_into_one_commit(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        head = [create_commit(ada, "ada/tiny", {"f": b"%d" % n}) for n in range(3)][-1]
        assert ada.post(f"{REPO}/branch/dev").status_code == 200
        assert ada.post(f"{REPO}/super-squash/main", json={"message": "All\n\nof it"}).status_code == 200
        (one,) = ada.get(f"{REPO}/commits/main").json()
        assert (one["title"], one["message"]) == ("All", "of it")
        assert paths_in(ada, "ada/tiny") == {"f"}
        assert head_of(ada, "ada/tiny", "dev") == head
        assert len(ada.get(f"{REPO}/commits/dev").json()) == 4
        event = ada.get(f"{REPO}/events?after=5").json()[-1]["payload"]
        assert event["updatedRefs"] == [{"ref": "refs/heads/main", "oldSha": head, "newSha": one["id"]}]
        for rev in ("nowhere", head, "v1"):
            assert error(ada.post(f"{REPO}/super-squash/{rev}"))[:2] == (404, "RevisionNotFound")


@pytest.mark.parametrize("rev", ["HEAD", "refs/heads/main", "refs%2Fheads%2Fmain"])
def test_main_may_be_named_in_other_ways(sqlite_hub: RunningHub, rev: str) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        sha = create_commit(ada, "ada/tiny", {"a/f": b"here"})
        assert ada.get(f"{REPO}/revision/{rev}").json()["sha"] == sha
        assert ada.get(f"{REPO}/commits/{rev}").json()[0]["id"] == sha
        assert ada.get(f"{REPO}/tree/{rev}/a").json()[0]["path"] == "a/f"
        assert ada.get(f"/ada/tiny/resolve/{rev}/a/f").headers["x-repo-commit"] == sha
        assert ada.post(f"{REPO}/paths-info/{rev}", json={"paths": ["a/f"]}).json()[0]["size"] == 4
