"""Concurrent changes leave a discussion consistent, and each change that was stored has one event."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_commit, head_of, paths_in

from hubgate.server.access.caller import Caller
from hubgate.server.access.identity import Identity
from hubgate.server.accounts.model import Person
from hubgate.server.errors import Forbidden
from hubgate.server.hub.commits.model import AddFile, CommitRequest, Content
from hubgate.server.hub.discussions.pull_requests import commit_as_pull_request
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import MAIN
from hubgate.server.resources import Hub

ROUNDS = 4


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        yield opened


def statuses(answers: list[httpx.Response]) -> list[int]:
    return [answer.status_code for answer in answers]


def event_counts(scene: PublicRepo) -> Counter[str]:
    events = scene.ada.get(f"{API}/events?limit=1000").json()
    assert [one["seq"] for one in events] == list(range(1, len(events) + 1))
    kinds = [one["payload"]["event"] for one in events]
    return Counter(f"{kind['scope']}/{kind['action']}" for kind in kinds)


def test_concurrent_merge_close_comment_and_delete_are_consistent(scene: PublicRepo) -> None:
    for number in range(1, ROUNDS + 1):
        before, head = event_counts(scene), head_of(scene.ada, REPO)
        scene.create_pull_request({f"idea-{number}.txt": b"x"})
        at = f"{API}/discussions/{number}"
        calls = [
            lambda at=at: scene.ada.post(f"{at}/merge"),
            lambda at=at: scene.ada.post(f"{at}/merge"),
            lambda number=number: scene.set_status(number, "closed"),
            lambda number=number: scene.set_status(number, "closed", by=scene.eve),
            lambda at=at: scene.eve.post(f"{at}/comment", json={"comment": "hello"}),
            lambda at=at: scene.ada.post(f"{at}/title", json={"title": "Another title"}),
            lambda number=number: scene.remove(number),
        ]
        answers = statuses(run_concurrently(calls))
        assert set(answers) <= {200, 201, 404, 409}, answers
        merges, closes, comments, titles, removed = answers[:2], answers[2:4], answers[4], answers[5], answers[6]
        assert removed == 200
        assert scene.ada.get(at).status_code == 404
        assert merges.count(200) + closes.count(200) <= 1, "it was merged or closed, once"
        was_merged = head_of(scene.ada, REPO) != head
        assert was_merged == (merges.count(200) == 1)
        assert (f"idea-{number}.txt" in paths_in(scene.ada, REPO)) == was_merged
        assert f"refs/pr/{number}" not in scene.refs()
        new = event_counts(scene) - before
        assert (
            new
            == Counter(
                {
                    "discussion/create": 1,
                    # Opening, removing and perhaps merging move refs.
                    "repo.content/update": 2 + was_merged,
                    "discussion/update": merges.count(200) + closes.count(200) + (titles == 200),
                    "discussion.comment/create": int(comments == 201),
                    "discussion/delete": 1,
                }
            )
            - Counter()
        )


def test_one_merge_of_many_wins(scene: PublicRepo) -> None:
    scene.create_pull_request({"idea.txt": b"x"})
    at = f"{API}/discussions/1"
    answers = statuses(run_concurrently([lambda: scene.ada.post(f"{at}/merge")] * 6))
    assert sorted(answers) == [200, 409, 409, 409, 409, 409]
    events = scene.ada.get(at).json()["events"]
    assert [event["data"].get("status") for event in events].count("merged") == 1
    assert event_counts(scene)["discussion/update"] == 1


def test_merges_and_commits_of_one_branch_all_land(scene: PublicRepo) -> None:
    for number in range(1, 4):
        scene.create_pull_request({f"idea-{number}.txt": b"x"})
    calls = [lambda at=f"{API}/discussions/{number}": scene.ada.post(f"{at}/merge") for number in range(1, 4)]
    commits = [lambda name=f"own-{number}.txt": create_commit(scene.ada, REPO, {name: b"x"}) for number in range(3)]
    run_concurrently([*calls, *commits])
    names = {
        f"{kind}-{number}.txt" for kind, numbers in (("idea", (1, 2, 3)), ("own", (0, 1, 2))) for number in numbers
    }
    assert names <= paths_in(scene.ada, REPO)
    assert [scene.ada.get(f"{API}/discussions/{number}").json()["status"] for number in (1, 2, 3)] == ["merged"] * 3


def test_concurrent_comments_are_all_stored_and_one_close_wins(scene: PublicRepo) -> None:
    scene.eve.post(f"{API}/discussions", json={"title": "A question"})
    at = f"{API}/discussions/1"
    comment = [
        lambda client=client, number=number: client.post(f"{at}/comment", json={"comment": f"number {number}"})
        for number, client in enumerate([scene.ada, scene.eve] * 4)
    ]
    closes = [lambda: scene.set_status(1, "closed")] * 3
    answers = statuses(run_concurrently([*comment, *closes]))
    assert answers[:8] == [201] * 8
    assert sorted(answers[8:]) == [200, 409, 409]
    events = scene.ada.get(at).json()["events"]
    texts = [event["data"]["latest"]["raw"] for event in events if event["type"] == "comment"]
    assert sorted(texts[1:]) == [f"number {number}" for number in range(8)]
    assert len({event["id"] for event in events}) == len(events) == 10
    assert event_counts(scene)["discussion.comment/create"] == 8


def test_reactions_of_one_user_toggle_one_by_one(scene: PublicRepo) -> None:
    scene.ada.post(f"{API}/discussions", json={"title": "A question"})
    (first,) = scene.ada.get(f"{API}/discussions/1").json()["events"]
    at = f"{API}/discussions/1/comment/{first['id']}/reaction"
    answers = run_concurrently([lambda: scene.eve.post(at, json={"reaction": "👍"})] * 5)
    assert statuses(answers) == [200] * 5
    (event,) = scene.ada.get(f"{API}/discussions/1").json()["events"]
    assert event["data"]["reactions"] == [{"reaction": "👍", "users": ["eve"], "count": 1}]


def test_discussions_turned_off_during_an_upload_prevent_its_pull_request(scene: PublicRepo) -> None:
    """They are turned off after the permissions were checked."""
    caller = Caller(Identity.session(scene.eve_user.id, {}), Person(scene.eve_user, (), {}))
    request = CommitRequest("Too late", operations=[AddFile("idea.txt", Content(1, b"x"))])

    async def commit_late(opened: Hub) -> None:
        repo = await repo_store.named(opened.db, "model", "ada", "tiny")
        assert repo is not None
        await commit_as_pull_request(opened.repos, repo, caller, MAIN, request)

    assert scene.ada.put(f"{API}/settings", json={"discussionsDisabled": True}).status_code == 200
    with pytest.raises(Forbidden):
        scene.hub.call(commit_late)
    assert scene.ada.get(f"{API}/discussions").json()["count"] == 0
    assert "refs/pr/1" not in scene.refs()
