"""O72: the owner can close and remove what guests brought; guests cannot do that to others."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_repo, send_commit, send_large, send_lines


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        yield opened


def large(content: bytes, path: str) -> tuple[str, dict[str, object]]:
    oid = hashlib.sha256(content).hexdigest()
    return "lfsFile", {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}


def test_o72_owner_removes_a_pull_request_with_everything_only_it_contains(scene: PublicRepo) -> None:
    content = b"w" * 50_000
    oid = send_large(scene.eve, REPO, content)
    opened = send_lines(scene.eve, REPO, large(content, "model.bin"), query="?create_pr=1")
    sha = opened.json()["commitOid"]
    assert scene.ada.get(f"/{REPO}/resolve/{sha}/model.bin").content == content
    assert scene.remove(1).status_code == 200
    assert "refs/pr/1" not in scene.refs()
    for address in (f"{API}/revision/{sha}", f"/{REPO}/resolve/{sha}/model.bin", f"/{REPO}/commit/{sha}"):
        assert scene.ada.get(address).status_code == 404, address
    scene.run_housekeeping()
    asked = {"operation": "download", "objects": [{"oid": oid, "size": len(content)}]}
    batch = scene.ada.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked).json()
    assert batch["objects"][0]["error"]["code"] == 404
    assert scene.remove(1).status_code == 404
    assert send_commit(scene.eve, REPO, {"a.txt": b"a"}, rev="refs/pr/1").status_code == 404
    num, _ = scene.create_pull_request({"next.txt": b"x"})
    assert num == 2, "numbers are not used twice"


def test_o72_files_shared_with_another_pull_request_remain(scene: PublicRepo) -> None:
    content = b"w" * 50_000
    send_large(scene.eve, REPO, content)
    first = send_lines(scene.eve, REPO, large(content, "model.bin"), query="?create_pr=1").json()["commitOid"]
    work = scene.clone("adas", scene.ada_token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    # The second pull request is based on the first.
    scene.propose({"other.txt": b"x"}, by=scene.ada)
    work.git("push", "-q", "--force", "origin", "HEAD:refs/pr/2")
    assert scene.remove(1).status_code == 200
    scene.run_housekeeping()
    assert scene.ada.get(f"/{REPO}/resolve/refs%2Fpr%2F2/model.bin").content == content
    assert scene.ada.get(f"{API}/revision/{first}").status_code == 200
    assert scene.remove(2).status_code == 200
    scene.run_housekeeping()
    assert scene.ada.get(f"{API}/revision/{first}").status_code == 404


@pytest.mark.one_engine
def test_o72_owner_closes_a_pull_request(scene: PublicRepo) -> None:
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    said = scene.set_status(num, "closed")
    assert said.status_code == 200, said.text
    event = said.json()["newStatus"]
    assert (event["type"], event["data"], event["author"]["name"]) == ("status-change", {"status": "closed"}, "ada")
    assert send_commit(scene.eve, REPO, {"more.txt": b"x"}, rev=f"refs/pr/{num}").status_code == 404
    assert scene.set_status(num, "closed").status_code == 409
    assert scene.ada.delete(f"{API}/discussions/{num}/ref").status_code == 200
    assert scene.set_status(num, "open").status_code == 409, "its commits are gone"
    assert "refs/pr/1" not in scene.refs()


@pytest.mark.one_engine
def test_o72_pull_request_can_be_closed_with_a_comment(scene: PublicRepo) -> None:
    """As existing clients send it; an empty comment is not stored."""
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    for status, comment in (("closed", "no, thanks"), ("open", None), ("closed", "")):
        said = scene.ada.post(f"{API}/discussions/{num}/status", json={"status": status, "comment": comment})
        assert said.status_code == 200, said.text
    events = scene.ada.get(f"{API}/discussions/{num}").json()["events"]
    assert [event["data"]["latest"]["raw"] for event in events if event["type"] == "comment"] == ["", "no, thanks"]


@pytest.mark.one_engine
def test_o72_author_cannot_reopen_what_a_writer_closed(scene: PublicRepo) -> None:
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    assert scene.set_status(num, "closed", by=scene.eve).status_code == 200
    assert scene.set_status(num, "open", by=scene.eve).status_code == 200, "closed by its author"
    assert scene.set_status(num, "closed").status_code == 200
    refused = scene.set_status(num, "open", by=scene.eve)
    assert (refused.status_code, "Only such users can reopen it" in refused.json()["error"]) == (403, True)
    assert scene.set_status(num, "open").status_code == 200
    assert scene.set_status(num, "closed", by=scene.eve).status_code == 200


@pytest.mark.one_engine
def test_o72_ref_of_an_open_pull_request_cannot_be_deleted(scene: PublicRepo) -> None:
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    assert scene.ada.delete(f"{API}/discussions/{num}/ref").status_code == 409
    assert scene.ada.delete(f"{API}/discussions/{num + 1}/ref").status_code == 404


@pytest.mark.one_engine
def test_o72_writers_may_remove_and_the_author_may_only_close(scene: PublicRepo) -> None:
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "mallory"))) as mallory:
        assert scene.remove(num, by=mallory).status_code == 403
        assert scene.set_status(num, "closed", by=mallory).status_code == 403
        assert mallory.delete(f"{API}/discussions/{num}/ref").status_code == 403
    assert scene.remove(num, by=scene.eve).status_code == 403
    with scene.hub.client() as visitor:
        assert scene.remove(num, by=visitor).status_code == 401
    assert scene.set_status(num, "closed", by=scene.eve).status_code == 200
    create_repo(scene.ada, "secret", private=True)
    scene.propose({"a.txt": b"a"}, by=scene.ada, repo="ada/secret")
    for number in (1, 9):
        hidden = scene.eve.delete(f"/api/models/ada/secret/discussions/{number}")
        assert (hidden.status_code, hidden.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.one_engine
@pytest.mark.parametrize("body", [{}, {"status": "merged"}, {"status": 1}, [], {"status": "closed", "comment": 1}])
def test_o72_invalid_status_is_rejected(scene: PublicRepo, body: object) -> None:
    num, _ = scene.create_pull_request({"idea.txt": b"x"})
    answer = scene.ada.post(f"{API}/discussions/{num}/status", json=body)
    assert answer.status_code == 422, answer.text
    for number in ("0", "x", "-1", "9" * 30):
        assert scene.ada.post(f"{API}/discussions/{number}/status", json={"status": "closed"}).status_code == 404


@pytest.mark.one_engine
def test_o72_owner_sees_who_opened_each_pull_request(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    scene.create_pull_request({"more.txt": b"x"})
    scene.set_status(1, "closed")
    said = scene.ada.get(f"{API}/discussions").json()
    assert (said["count"], said["start"]) == (2, 0)
    shown = [(one["num"], one["status"], one["isPullRequest"], one["author"]["name"]) for one in said["discussions"]]
    assert shown == [(2, "open", True, "eve"), (1, "closed", True, "eve")]
    assert scene.ada.get(f"{API}/discussions?status=open&type=pull_request&author=eve").json()["count"] == 1
    assert scene.ada.get(f"{API}/discussions?author=nobody").json() == {"discussions": [], "count": 0, "start": 0}


@pytest.mark.parametrize("version", ["0", "2"])
def test_o72_removed_commit_cannot_be_fetched_by_its_id(scene: PublicRepo, version: str) -> None:
    _, sha = scene.create_pull_request({"evil.txt": b"x"})
    scene.create_pull_request({"other.txt": b"x"})
    work, speaking = scene.clone("adas", scene.ada_token), ("-c", f"protocol.version={version}", "fetch", "origin")
    work.git(*speaking, sha)
    assert scene.remove(1).status_code == 200
    other = scene.clone("others", scene.ada_token)
    other.fails(*speaking, sha)
    other.fails(*speaking, "main", sha)
    other.git(*speaking, "main", "refs/pr/2", scene.refs()["refs/pr/2"])
