"""Pushing to refs/pr/N: allowed for its author and for writers while it is open, and nothing else."""

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.git import WorkingCopy
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.git.conftest import Scene

from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

MAIN = "refs/heads/main"


@pytest.fixture
def bobs(scene: Scene) -> WorkingCopy:
    """Bob's clone, with pull request 1, which he opened."""
    bob = create_user(scene.hub, "bob")
    token = create_token(scene.hub, bob)
    with api(scene.hub, token) as client:
        opened = send_commit(client, "ada/tiny", {"idea.txt": b"an idea\n"}, query="?create_pr=1")
        assert opened.json()["pullRequestUrl"].endswith("/discussions/1"), opened.text
    work = scene.clone("bobs", token=token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    return work


def set_status(scene: Scene, number: int, status: str) -> None:
    async def unit(tx: Tx) -> None:
        sql = "UPDATE discussions SET status = :status WHERE num = :num"
        await tx.exec(sql, {"status": status, "num": number})

    async def work(opened: Hub) -> None:
        await opened.db.write(unit)

    scene.hub.call(work)


def test_author_may_push(scene: Scene, bobs: WorkingCopy) -> None:
    before, head = bobs.head(), bobs.commit("more.txt")
    bobs.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert scene.refs()["refs/pr/1"] == head
    assert scene.events()[-1]["updatedRefs"] == [{"ref": "refs/pr/1", "oldSha": before, "newSha": head}]
    set_status(scene, 1, "draft")
    bobs.commit("draft.txt")
    bobs.git("push", "-q", "origin", "HEAD:refs/pr/1")


def test_writer_may_push(scene: Scene, bobs: WorkingCopy) -> None:
    work = scene.clone("adas")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    head = work.commit("helped.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert scene.refs()["refs/pr/1"] == head


@pytest.mark.one_engine
def test_author_may_push_to_nothing_else(scene: Scene, bobs: WorkingCopy) -> None:
    with api(scene.hub, scene.token) as ada:
        send_commit(ada, "ada/tiny", {"hers.txt": b"hers\n"}, query="?create_pr=1")
    bobs.commit("more.txt")
    refs = scene.refs()
    for target in (MAIN, "refs/heads/dev", "refs/tags/v1"):
        assert "Only the owner may change this repo" in bobs.fails("push", "--force", "origin", f"HEAD:{target}")
    for target in ("refs/pr/2", "refs/pr/3", "refs/pr/01", "refs/pr/x", "refs/pr/1/x"):
        assert "no such pull request" in bobs.fails("push", "--force", "origin", f"HEAD:{target}"), target
    assert "close the pull request instead" in bobs.fails("push", "origin", ":refs/pr/1")
    assert scene.refs() == refs
    assert "Only the owner" in bobs.fails("push", "origin", "HEAD:refs/pr/1", "HEAD:refs/heads/dev")
    assert scene.refs() == {**refs, "refs/pr/1": bobs.head()}


@pytest.mark.one_engine
@pytest.mark.parametrize("status", ["closed", "merged"])
def test_closed_pull_request_rejects_pushes(scene: Scene, bobs: WorkingCopy, status: str) -> None:
    set_status(scene, 1, status)
    bobs.commit("late.txt")
    assert "no open pull request" in bobs.fails("push", "origin", "HEAD:refs/pr/1")
    adas = scene.clone("adas")
    adas.commit("late.txt")
    assert "no such pull request" in adas.fails("push", "--force", "origin", "HEAD:refs/pr/1")


@pytest.mark.one_engine
def test_strangers_and_unknown_numbers_are_rejected(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit()
    assert "no such pull request" in work.fails("push", "origin", "HEAD:refs/pr/1")
    stranger = create_token(scene.hub, create_user(scene.hub, "eve"))
    said = work.fails("push", scene.url(token=stranger), "HEAD:refs/pr/1")
    assert "no open pull request" in said
    assert "403" in said


@pytest.mark.one_engine
def test_app_with_write_discussions_may_push(scene: Scene, bobs: WorkingCopy) -> None:
    """write-discussions allows pushing to the author's pull requests and nothing more."""
    app = create_app(scene.hub, scopes=("openid", "write-discussions", "read-repos"))
    token = tokens_for(app, scene.ada, scope="openid write-discussions")["access_token"]
    create_repo(scene.client, "mine")
    send_commit(scene.client, "ada/mine", {"idea.txt": b"an idea\n"}, query="?create_pr=1")
    work = scene.clone("one", "ada/mine", token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    head = work.commit("more.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert scene.refs("mine")["refs/pr/1"] == head
    assert "needs the scope" in work.fails("push", "origin", "HEAD:main")
    only_reads = tokens_for(app, scene.ada, scope="openid read-repos")["access_token"]
    work.commit("even-more.txt")
    assert "403" in work.fails("push", scene.url("ada/mine", only_reads), "HEAD:refs/pr/1")


def test_commits_over_http_follow_the_same_rules(scene: Scene, bobs: WorkingCopy) -> None:
    """Only while it is open, also for a writer; and an unknown number is rejected."""
    token = create_token(scene.hub, create_user(scene.hub, "eve"))
    with api(scene.hub, token) as eve:
        for client in (eve, scene.client):
            for number in ("2", "0", "01", "9" * 20, "9" * 5000, "x", "\u0661"):
                answer = send_commit(client, "ada/tiny", {"a.txt": b"a"}, rev=f"refs/pr/{number}")
                assert (answer.status_code, answer.headers["x-error-code"]) == (404, "RevisionNotFound"), number
        assert send_commit(eve, "ada/tiny", {"a.txt": b"a"}, rev="refs/pr/1").status_code == 403
    assert send_commit(scene.client, "ada/tiny", {"a.txt": b"a"}, rev="refs/pr/1").status_code == 200
    set_status(scene, 1, "closed")
    assert send_commit(scene.client, "ada/tiny", {"b.txt": b"b"}, rev="refs/pr/1").status_code == 404
