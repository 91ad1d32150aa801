"""O72: discussions and comments of users who may not write to a repo are charged to them, limited, and removable."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_repo, send_commit

from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.entries.model import MAX_ENTRIES, Commit
from hubgate.server.resources import Hub

DISCUSSIONS = f"{API}/discussions"
QUOTA = 100_000


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    settings = {"guest_pull_requests": "3", "guest_bytes": str(QUOTA)}
    with hub_with_public_repo(engine, tmp_path, **settings) as opened:
        yield opened


def test_o72_open_discussions_of_a_guest_are_limited(scene: PublicRepo) -> None:
    for _ in range(3):
        assert scene.eve.post(DISCUSSIONS, json={"title": "Buy now"}).status_code == 200
    refused = scene.eve.post(DISCUSSIONS, json={"title": "Buy now"})
    assert (refused.status_code, "3 open discussions" in refused.json()["error"]) == (403, True)
    assert scene.eve.post(DISCUSSIONS, json={"title": "A change", "pullRequest": True}).status_code == 200
    assert scene.set_status(1, "closed", by=scene.eve).status_code == 200
    assert scene.eve.post(DISCUSSIONS, json={"title": "Buy now"}).status_code == 200
    assert scene.set_status(1, "open", by=scene.eve).status_code == 403, "that would be four"
    for _ in range(5):
        assert scene.ada.post(DISCUSSIONS, json={"title": "Mine"}).status_code == 200


def test_o72_texts_of_guests_are_charged_and_removal_ends_the_charge(scene: PublicRepo) -> None:
    text = "x" * 45_000
    assert scene.eve.post(DISCUSSIONS, json={"title": "Long", "description": text}).status_code == 200
    assert scene.ada.post(DISCUSSIONS, json={"title": "Hers"}).status_code == 200
    assert scene.eve.post(f"{DISCUSSIONS}/2/comment", json={"comment": text}).status_code == 201
    for number in (1, 2):
        refused = scene.eve.post(f"{DISCUSSIONS}/{number}/comment", json={"comment": text})
        assert (refused.status_code, "bytes" in refused.json()["error"]) == (403, True)
    assert scene.propose({"file.bin": b"x" * 20_000}).status_code == 403, "texts and files share a quota"
    assert scene.ada.post(f"{DISCUSSIONS}/1/comment", json={"comment": text}).status_code == 201
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "bob"))) as bob:
        assert bob.post(f"{DISCUSSIONS}/1/comment", json={"comment": text}).status_code == 201
    assert scene.remove(1).status_code == 200
    assert scene.eve.post(f"{DISCUSSIONS}/2/comment", json={"comment": text}).status_code == 201


def test_o72_edits_of_guests_are_charged(scene: PublicRepo) -> None:
    scene.eve.post(DISCUSSIONS, json={"title": "Short"})
    (first,) = scene.eve.get(f"{DISCUSSIONS}/1").json()["events"]
    at = f"{DISCUSSIONS}/1/comment/{first['id']}/edit"
    sent = [scene.eve.post(at, json={"content": "x" * size}).status_code for size in (60_000, 1, 60_000)]
    assert sent == [200, 200, 403]


@pytest.mark.one_engine
def test_o72_edits_of_guests_that_add_nothing_are_charged(scene: PublicRepo) -> None:
    """The event of each edit stores the whole text."""
    scene.eve.post(DISCUSSIONS, json={"title": "Short", "description": "x" * 30_000})
    (first,) = scene.eve.get(f"{DISCUSSIONS}/1").json()["events"]
    at = f"{DISCUSSIONS}/1/comment/{first['id']}/edit"
    sent = [scene.eve.post(at, json={"content": character * 30_000}).status_code for character in "abc"]
    assert sent == [200, 200, 403]


def test_o72_guest_cannot_fill_a_discussion(scene: PublicRepo) -> None:
    """The owner can still comment, and hide the spam."""
    scene.ada.post(DISCUSSIONS, json={"title": "A question"})
    for number in range(100):
        # Each is charged for more than its text; the quota is used up before the limit for one discussion.
        answer = scene.eve.post(f"{DISCUSSIONS}/1/comment", json={"comment": f"spam {number}"})
        if answer.status_code != 201:
            break
    assert answer.status_code == 403
    assert scene.ada.post(f"{DISCUSSIONS}/1/comment", json={"comment": "enough"}).status_code == 201
    (spam, *_) = [one for one in scene.ada.get(f"{DISCUSSIONS}/1").json()["events"] if one["author"]["name"] == "eve"]
    assert scene.ada.post(f"{DISCUSSIONS}/1/comment/{spam['id']}/hide").status_code == 200


def test_o72_guest_cannot_toggle_the_status_forever(scene: PublicRepo) -> None:
    scene.eve.post(DISCUSSIONS, json={"title": "On and off"})
    done = 0
    for number in range(110):
        if scene.set_status(1, "closed" if number % 2 == 0 else "open", by=scene.eve).status_code != 200:
            break
        done += 1
    assert 90 < done < 110
    assert scene.set_status(1, "open").status_code == 200
    assert scene.set_status(1, "closed").status_code == 200


@pytest.mark.one_engine
def test_o72_comments_of_guests_do_not_move_the_repo_up_in_lists(scene: PublicRepo) -> None:
    before = scene.ada.get(API).json()["lastModified"]
    scene.eve.post(DISCUSSIONS, json={"title": "A question"})
    scene.eve.post(f"{DISCUSSIONS}/1/comment", json={"comment": "me again"})
    assert scene.ada.get(API).json()["lastModified"] == before


@pytest.mark.one_engine
def test_o72_contributions_of_guests_can_be_turned_off(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="0") as scene:
        for body in ({"title": "Words"}, {"title": "Change", "pullRequest": True}):
            refused = scene.eve.post(DISCUSSIONS, json=body)
            assert (refused.status_code, "only users who may write" in refused.json()["error"]) == (403, True)
        create_repo(scene.eve, "own")
        assert scene.eve.post("/api/models/eve/own/discussions", json={"title": "Words"}).status_code == 200


@pytest.mark.one_engine
def test_o72_status_of_a_full_discussion_is_not_toggled_forever(scene: PublicRepo) -> None:
    """Not even by the owner: a reader receives all entries at once."""
    scene.ada.post(DISCUSSIONS, json={"title": "On and off"})

    async def fill(opened: Hub) -> None:
        found = await opened.db.one("SELECT id FROM repos")
        assert found is not None
        commits = [Commit("0" * 40, "x")] * (MAX_ENTRIES - 1)
        await opened.db.write(lambda tx: entry_store.add_commits(tx, found["id"], 1, scene.ada_user.id, commits, 1))

    scene.hub.call(fill)
    assert scene.set_status(1, "closed").status_code == 200
    refused = scene.set_status(1, "open")
    assert (refused.status_code, "full" in refused.json()["error"]) == (409, True)


def test_o72_commits_fill_a_discussion_exactly(scene: PublicRepo) -> None:
    """The newest commits of a push are listed, as many as there is room for."""
    scene.create_pull_request({"idea.txt": b"x"})

    async def fill(opened: Hub) -> None:
        found = await opened.db.one("SELECT id FROM repos")
        assert found is not None
        commits = [Commit("0" * 40, "x")] * (MAX_ENTRIES - 4)
        await opened.db.write(lambda tx: entry_store.add_commits(tx, found["id"], 1, scene.ada_user.id, commits, 1))

    scene.hub.call(fill)
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    pushed = [work.commit(f"pushed-{number}.txt") for number in range(5)]
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    events = scene.ada.get(f"{DISCUSSIONS}/1").json()["events"]
    assert len(events) == MAX_ENTRIES
    assert [event["data"]["oid"] for event in events[-2:]] == pushed[-2:]
    work.commit("late.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert len(scene.ada.get(f"{DISCUSSIONS}/1").json()["events"]) == MAX_ENTRIES


@pytest.mark.one_engine
def test_o72_title_of_invisible_characters_is_rejected_or_replaced(scene: PublicRepo) -> None:
    """The owner could not open the discussion from a list: the link would have no text."""
    for title in ("\u200b\u200b\u200b", "\u202e\u2066\u2069", "\ufeff\u0001\u00ad"):
        assert scene.eve.post(DISCUSSIONS, json={"title": title}).status_code == 422, ascii(title)
        assert send_commit(scene.eve, REPO, {"a.txt": b"x"}, query="?create_pr=1", summary=title).status_code == 200
    assert {one["title"] for one in scene.ada.get(DISCUSSIONS).json()["discussions"]} == {"(no title)"}
