"""Pull requests in the API: drafts, commits in the conversation, diffs, conflicts and merges."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.engines import Engine
from tests.bed.people import api
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_commit, head_of, paths_in, send_commit

from hubgate.server.hub.context import Limits

DISCUSSIONS = f"{API}/discussions"


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        create_commit(opened.ada, REPO, {"notes.txt": b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"})
        yield opened


def details(client: httpx.Client, num: int = 1) -> dict[str, Any]:
    answer = client.get(f"{DISCUSSIONS}/{num}?diff=1")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def merge(client: httpx.Client, num: int = 1, **body: str) -> httpx.Response:
    return client.post(f"{DISCUSSIONS}/{num}/merge", json=body or None)


def file_at_main(scene: PublicRepo, path: str) -> bytes:
    return scene.ada.get(f"/{REPO}/raw/main/{path}").content


@pytest.mark.one_engine
def test_pull_request_without_commits_is_a_draft(scene: PublicRepo) -> None:
    body = {"title": "Work in progress", "description": "Soon", "pullRequest": True}
    assert scene.eve.post(DISCUSSIONS, json=body).json()["num"] == 1
    found = details(scene.eve)
    assert (found["status"], found["isPullRequest"]) == ("draft", True)
    assert found["changes"] == {"base": "refs/heads/main"}
    assert (found["filesWithConflicts"], found["diff"]) == ([], "")
    assert scene.refs()["refs/pr/1"] == head_of(scene.ada, REPO)
    refused = merge(scene.ada)
    assert (refused.status_code, "draft" in refused.json()["error"]) == (409, True)
    create_commit(scene.eve, REPO, {"new.txt": b"new\n"}, rev="refs/pr/1", summary="Add a file")
    assert details(scene.eve)["status"] == "draft", "commits do not publish it"
    assert scene.set_status(1, "open", by=scene.eve).status_code == 200
    assert details(scene.eve)["status"] == "open"
    payloads = [one["payload"] for one in scene.ada.get(f"{API}/events").json()][2:]
    assert [f"{one['event']['scope']}/{one['event']['action']}" for one in payloads] == [
        "discussion/create",
        "repo.content/update",
        "repo.content/update",
        "discussion/update",
    ]
    assert payloads[0]["discussion"]["status"] == "draft"
    assert payloads[0]["comment"]["content"] == "Soon"
    assert payloads[1]["updatedRefs"][0]["ref"] == "refs/pr/1"


@pytest.mark.one_engine
def test_draft_without_its_ref_is_not_published(scene: PublicRepo) -> None:
    scene.eve.post(DISCUSSIONS, json={"title": "Work in progress", "pullRequest": True})
    drop = "DELETE FROM refs WHERE name = 'refs/pr/1'"
    scene.hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(drop, {})))
    refused = scene.set_status(1, "open", by=scene.eve)
    assert refused.status_code == 409
    assert refused.json()["error"] == "The pull request cannot be published: refs/pr/1 was deleted."


@pytest.mark.one_engine
def test_commits_are_part_of_the_conversation(scene: PublicRepo) -> None:
    _, first = scene.create_pull_request({"idea.txt": b"an idea\n"})
    second = create_commit(scene.eve, REPO, {"more.txt": b"more\n"}, rev="refs/pr/1", summary="More of it")
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    pushed = [work.commit(f"pushed-{number}.txt") for number in range(2)]
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    events = details(scene.ada)["events"]
    assert [event["type"] for event in events] == ["comment", *["commit"] * 4]
    assert [event["data"]["oid"] for event in events[1:]] == [first, second, *pushed]
    assert events[2]["data"]["subject"] == "More of it"
    assert {event["author"]["name"] for event in events} == {"eve"}
    assert "+an idea" in details(scene.ada)["diff"]


@pytest.mark.one_engine
def test_merge_creates_a_merge_commit(scene: PublicRepo) -> None:
    _, theirs = scene.create_pull_request({"notes.txt": b"ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n"})
    ours = create_commit(scene.ada, REPO, {"notes.txt": b"one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"})
    assert details(scene.ada)["filesWithConflicts"] == []
    diff = details(scene.ada)["diff"]
    assert ("+ONE" in diff, "SEVEN" in diff) == (True, False), "compared with the merge base"
    answer = merge(scene.ada, comment="Thanks!")
    assert answer.status_code == 200, answer.text
    found = details(scene.eve)
    assert (found["status"], found["changes"]["mergeCommitId"]) == ("merged", head_of(scene.ada, REPO))
    assert [event["type"] for event in found["events"]] == ["comment", "commit", "comment", "status-change"]
    assert found["events"][3]["data"] == {"status": "merged"}
    assert found["diff"] == diff, "the changes that were merged"
    assert file_at_main(scene, "notes.txt") == b"ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n"
    work = scene.clone("fresh")
    assert work.git("log", "-1", "--format=%P %an %s").split(" ", 2)[:2] == [ours, theirs]
    assert work.git("log", "-1", "--format=%an: %s").strip() == "ada: Merge pull request #1: A change"
    assert work.git("fsck", "--strict") is not None
    payloads = [one["payload"] for one in scene.ada.get(f"{API}/events").json()][-3:]
    assert [one["event"]["scope"] for one in payloads] == ["discussion.comment", "repo.content", "discussion"]
    assert payloads[1]["updatedRefs"] == [
        {"ref": "refs/heads/main", "oldSha": ours, "newSha": found["changes"]["mergeCommitId"]}
    ]
    assert payloads[2]["discussion"]["changes"]["mergeCommitId"] == found["changes"]["mergeCommitId"]
    for again in (merge(scene.ada), scene.set_status(1, "open"), scene.set_status(1, "closed")):
        assert again.status_code == 409
    assert send_commit(scene.eve, REPO, {"late.txt": b"x"}, rev="refs/pr/1").status_code == 404
    assert scene.ada.get(f"{API}/commits/main").headers["x-total-count"] == "5"


@pytest.mark.one_engine
def test_merge_without_commits_moves_no_ref(scene: PublicRepo) -> None:
    """Existing clients merge such pull requests: the head of the branch is recorded as the merge commit."""
    scene.ada.post(DISCUSSIONS, json={"title": "Nothing new", "pullRequest": True})
    assert scene.set_status(1, "open").status_code == 200
    head = head_of(scene.ada, REPO)
    assert merge(scene.ada).json() == {"status": "merged", "mergeCommitId": head}
    assert head_of(scene.ada, REPO) == head
    assert details(scene.ada)["diff"] == ""


@pytest.mark.one_engine
def test_conflicts_are_named_and_nothing_is_merged(scene: PublicRepo) -> None:
    scene.create_pull_request({"notes.txt": b"theirs\n", "other.txt": b"fine\n", "both.txt": b"their version\n"})
    head = create_commit(scene.ada, REPO, {"notes.txt": b"ours\n", "both.txt": b"our version\n"})
    assert details(scene.ada)["filesWithConflicts"] == ["both.txt", "notes.txt"]
    objects = scene.objects
    refused = merge(scene.ada)
    assert refused.status_code == 409
    assert "both.txt, notes.txt" in refused.json()["error"]
    assert (head_of(scene.ada, REPO), details(scene.ada)["status"]) == (head, "open")
    assert scene.objects == objects, "a trial merge writes nothing to the repo"
    create_commit(scene.eve, REPO, {"notes.txt": b"ours\n", "both.txt": b"our version\n"}, rev="refs/pr/1")
    assert details(scene.ada)["filesWithConflicts"] == []
    assert merge(scene.ada).status_code == 200
    assert "other.txt" in paths_in(scene.ada, REPO)


@pytest.mark.one_engine
def test_unrelated_histories_are_not_merged(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    assert scene.ada.post(f"{API}/super-squash/main", json={}).status_code == 200
    assert details(scene.ada)["filesWithConflicts"] is True
    refused = merge(scene.ada)
    assert (refused.status_code, "no common commit" in refused.json()["error"]) == (409, True)


@pytest.mark.one_engine
def test_writers_squash_an_open_pull_request(scene: PublicRepo) -> None:
    _, sha = scene.create_pull_request({"idea.txt": b"x"})
    main, squash = head_of(scene.ada, REPO), f"{API}/super-squash/refs%2Fpr%2F1"
    assert scene.eve.post(squash).status_code == 403
    assert scene.ada.post(squash, json={"message": "All of it"}).status_code == 200
    (one,) = scene.ada.get(f"{API}/commits/refs%2Fpr%2F1").json()
    assert (one["title"], head_of(scene.ada, REPO)) == ("All of it", main)
    assert "idea.txt" in paths_in(scene.ada, REPO, "refs/pr/1")
    event = scene.ada.get(f"{API}/events?after=1").json()[-1]["payload"]
    assert event["updatedRefs"] == [{"ref": "refs/pr/1", "oldSha": sha, "newSha": one["id"]}]
    found = [item for item in details(scene.ada)["events"] if item["type"] == "commit"]
    assert [(item["data"]["oid"], item["author"]["name"]) for item in found] == [(sha, "eve"), (one["id"], "ada")]
    assert (details(scene.ada)["filesWithConflicts"], merge(scene.ada).status_code) == (True, 409)
    assert scene.set_status(1, "closed").status_code == 200
    refused = scene.ada.post(squash)
    assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")


@pytest.mark.one_engine
def test_only_writers_merge(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    assert merge(scene.eve).status_code == 403
    app = create_app(scene.hub, scopes=("openid", "write-discussions", "write-repos"))
    scopes = {"write-discussions": 403, "write-repos": 200}
    for scope, status in scopes.items():
        token = tokens_for(app, scene.ada_user, scope=f"openid {scope}")["access_token"]
        with api(scene.hub, token) as client:
            assert merge(client).status_code == status, scope


@pytest.mark.one_engine
def test_app_that_merges_with_a_comment_also_needs_write_discussions(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    app = create_app(scene.hub, scopes=("openid", "write-discussions", "write-repos"))
    for scopes, status in (("write-repos", 403), ("write-repos write-discussions", 200)):
        token = tokens_for(app, scene.ada_user, scope=f"openid {scopes}")["access_token"]
        with api(scene.hub, token) as client:
            assert merge(client, comment="Thanks!").status_code == status, scopes


@pytest.mark.one_engine
def test_merge_adds_no_comment_where_discussions_are_turned_off(scene: PublicRepo) -> None:
    """Open pull requests can still be merged, as they can be closed; comments are rejected for everyone."""
    scene.create_pull_request({"idea.txt": b"x"})
    assert scene.ada.put(f"{API}/settings", json={"discussionsDisabled": True}).status_code == 200
    head = head_of(scene.ada, REPO)
    refused = merge(scene.ada, comment="Thanks!")
    assert (refused.status_code, "turned off" in refused.json()["error"]) == (403, True)
    assert (head_of(scene.ada, REPO), details(scene.ada)["status"]) == (head, "open")
    assert merge(scene.ada).status_code == 200
    assert [event["type"] for event in details(scene.ada)["events"]] == ["comment", "commit", "status-change"]


@pytest.mark.one_engine
def test_merge_into_another_branch_does_not_change_main(scene: PublicRepo) -> None:
    assert scene.ada.post(f"{API}/branch/next", json={}).status_code == 200
    head = head_of(scene.ada, REPO)
    opened = send_commit(scene.eve, REPO, {"idea.txt": b"x"}, rev="next", query="?create_pr=1")
    assert opened.status_code == 200, opened.text
    assert details(scene.ada)["changes"] == {"base": "refs/heads/next"}
    assert merge(scene.ada).status_code == 200
    assert head_of(scene.ada, REPO) == head
    assert head_of(scene.ada, REPO, "next") == details(scene.ada)["changes"]["mergeCommitId"]


@pytest.mark.one_engine
def test_merge_updates_the_repos_card(scene: PublicRepo) -> None:
    scene.create_pull_request({"README.md": b"---\nlicense: mit\n---\n# Tiny\n"})
    assert merge(scene.ada).status_code == 200
    assert scene.ada.get(API).json()["cardData"]["license"] == "mit"


@pytest.mark.one_engine
def test_pull_request_into_a_deleted_branch_cannot_be_merged(scene: PublicRepo) -> None:
    assert scene.ada.post(f"{API}/branch/next", json={}).status_code == 200
    send_commit(scene.eve, REPO, {"idea.txt": b"x"}, rev="next", query="?create_pr=1")
    assert scene.ada.delete(f"{API}/branch/next").status_code == 200
    assert (details(scene.ada)["filesWithConflicts"], details(scene.ada)["diff"]) == ([], "")
    assert merge(scene.ada).status_code == 409
    scene.ada.post(DISCUSSIONS, json={"title": "Only words"})
    assert merge(scene.ada, 2).status_code == 409
    assert merge(scene.ada, 3).status_code == 404


@pytest.mark.one_engine
def test_gate_hides_the_diff(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"the idea"})
    assert scene.ada.put(f"{API}/settings", json={"gated": "manual"}).status_code == 200
    assert "diff" not in details(scene.eve)
    assert "the idea" in details(scene.ada)["diff"]


@pytest.mark.one_engine
def test_merge_is_repeated_on_a_branch_that_has_moved(scene: PublicRepo) -> None:
    """The branch moves between the merge commit and the transaction."""
    scene.create_pull_request({"idea.txt": b"x"})
    before = head_of(scene.ada, REPO)
    moved = create_commit(scene.ada, REPO, {"hers.txt": b"x"})
    restore = {"sha": before, "moved": moved}
    scene.at_failpoint("merge-before-move", "UPDATE refs SET sha = :sha WHERE sha = :moved", **restore)
    assert merge(scene.ada).status_code == 200
    work = scene.clone("fresh")
    assert work.git("log", "-1", "--format=%P").split()[0] == before
    assert details(scene.ada)["changes"]["mergeCommitId"] == work.head()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("UPDATE discussions SET status = 'closed'", 409),
        ("DELETE FROM discussions", 404),
        ("UPDATE repos SET owner_id = (SELECT id FROM users WHERE name = 'eve')", 403),
    ],
)
def test_merge_checks_again_before_the_branch_moves(scene: PublicRepo, change: str, status: int) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    scene.at_failpoint("merge-before-move", change)
    assert merge(scene.ada).status_code == status


@pytest.mark.one_engine
def test_large_diff_is_cut(scene: PublicRepo) -> None:
    scene.create_pull_request({"long.txt": b"a line of text\n" * 200_000})
    assert 900_000 < len(details(scene.ada)["diff"]) <= 1024 * 1024


@pytest.mark.one_engine
def test_executable_and_deleted_files_are_merged_as_git_does(scene: PublicRepo) -> None:
    work = scene.clone("adas", scene.ada_token)
    (work.folder / "run.sh").write_text("#!/bin/sh\n")
    (work.folder / "run.sh").chmod(0o755)
    work.git("add", ".")
    work.git("commit", "-q", "-m", "A script")
    work.git("push", "-q", "origin", "HEAD:main")
    send_commit(scene.eve, REPO, {"new.txt": b"x"}, delete=["notes.txt"], query="?create_pr=1")
    assert merge(scene.ada).status_code == 200
    work.git("pull", "-q")
    listed = work.git("ls-tree", "-r", "HEAD")
    assert "100755" in next(line for line in listed.splitlines() if line.endswith("run.sh"))
    assert "notes.txt" not in listed


@pytest.mark.one_engine
def test_merge_and_diff_have_a_time_limit(engine: Engine, tmp_path: Path) -> None:
    """The conversation can be read all the same, and nothing is merged."""
    with hub_with_public_repo(engine, tmp_path, Limits(merging_seconds=0.0)) as scene:
        scene.create_pull_request({"idea.txt": b"x"})
        for _ in range(2):
            found = details(scene.ada)
            assert (found["filesWithConflicts"], "diff" in found, found["status"]) == (False, False, "open")
        head = head_of(scene.ada, REPO)
        refused = merge(scene.ada)
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
        assert (head_of(scene.ada, REPO), details(scene.ada)["status"]) == (head, "open")


@pytest.mark.one_engine
def test_merge_is_rejected_if_the_head_is_not_the_reviewed_commit(scene: PublicRepo) -> None:
    _, reviewed = scene.create_pull_request({"idea.txt": b"harmless"})
    latest = create_commit(scene.eve, REPO, {"idea.txt": b"harmful"}, rev="refs/pr/1")
    head = head_of(scene.ada, REPO)
    refused = merge(scene.ada, head=reviewed)
    assert (refused.status_code, "has new commits" in refused.json()["error"]) == (409, True)
    assert (head_of(scene.ada, REPO), details(scene.ada)["status"]) == (head, "open")
    assert merge(scene.ada, head=latest).status_code == 200


def test_commits_pushed_during_a_merge_are_not_merged(scene: PublicRepo) -> None:
    _, first = scene.create_pull_request({"idea.txt": b"harmless"})
    latest = create_commit(scene.eve, REPO, {"idea.txt": b"harmful"}, rev="refs/pr/1")
    head = scene.ada.get(f"{API}/refs").json()["branches"][0]["targetCommit"]
    scene.at_failpoint(
        "merge-before-move", "UPDATE refs SET sha = :first WHERE sha = :latest", first=first, latest=latest
    )
    assert merge(scene.ada).status_code == 409
    assert (head_of(scene.ada, REPO), details(scene.ada)["status"]) == (head, "open")


@pytest.mark.one_engine
def test_merge_without_commits_shows_no_changes_of_others(scene: PublicRepo) -> None:
    """A pull request without commits is merged at the branch's head, which is the merge of another one."""
    scene.create_pull_request({"idea.txt": b"somebody's idea\n"})
    assert merge(scene.ada).status_code == 200
    scene.ada.post(DISCUSSIONS, json={"title": "Nothing new", "pullRequest": True})
    assert scene.set_status(2, "open").status_code == 200
    assert merge(scene.ada, 2).status_code == 200
    assert details(scene.ada, 2)["diff"] == ""


@pytest.mark.one_engine
def test_changes_removed_from_the_branch_and_the_pull_request_are_not_shown(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"a password\n"})
    assert merge(scene.ada).status_code == 200
    assert scene.ada.delete(f"{DISCUSSIONS}/1/ref").status_code == 200
    assert "a password" in details(scene.ada)["diff"], "it is still on the branch"
    create_commit(scene.ada, REPO, {"idea.txt": b"nothing\n"})
    assert scene.ada.post(f"{API}/super-squash/main", json={}).status_code == 200
    assert details(scene.ada)["diff"] == ""
    assert "a password" not in scene.ada.get(f"/{REPO}/discussions/1/files").text


@pytest.mark.one_engine
def test_diff_of_a_long_line_is_not_read_completely(scene: PublicRepo) -> None:
    """Git prints the line at once, and the hub does not read all of it into memory."""
    scene.create_pull_request({"a.txt": b"short\n"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    work.commit("b.txt", b"x" * 20 * 1024 * 1024)
    work.commit("c.txt", b"x" * 4 * 1024 * 1024)
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    diff = details(scene.ada)["diff"]
    assert "+short" in diff
    assert len(diff) <= 1024 * 1024
