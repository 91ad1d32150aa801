"""The number of commits stored with each ref is right, however the ref was moved."""

import pytest
from tests.bed.git import run_git
from tests.bed.repos import create_commit, send_commit
from tests.git.conftest import Scene

from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.commit_counts import CommitCounter
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

REPO = "/api/models/ada/tiny"


def stored(scene: Scene) -> dict[str, int | None]:
    """By ref, from the database."""

    async def unit(tx: Tx) -> dict[str, int | None]:
        found = await store.named(tx, "model", "ada", "tiny")
        assert found is not None
        numbers = {}
        for name, _ in await store.refs(tx, found.id):
            row = await store.ref_with_commit_count(tx, found.id, name)
            numbers[name] = row[1] if row else None
        return numbers

    async def work(hub: Hub) -> dict[str, int | None]:
        return await hub.db.read_long(unit)

    return scene.hub.call(work)


def counted(scene: Scene) -> dict[str, int]:
    """The same, counted by git."""

    async def work(hub: Hub) -> str:
        found = await store.named(hub.db, "model", "ada", "tiny")
        assert found is not None
        return found.id

    folder = scene.repo_folder(scene.hub.call(work))
    return {name: int(run_git(folder, "rev-list", "--count", sha).stdout) for name, sha in scene.refs().items()}


def total(scene: Scene, rev: str = "main") -> int:
    return int(scene.client.get(f"{REPO}/commits/{rev}?limit=1").headers["x-total-count"])


def merge(scene: Scene, name: str = "work") -> str:
    """Pushes a merge of two lines to main."""
    work = scene.clone(name)
    work.git("checkout", "-q", "-b", "side")
    for number in range(3):
        work.commit(f"{name}-side-{number}")
    work.git("checkout", "-q", "main")
    work.commit(f"{name}-main")
    work.git("merge", "-q", "--no-edit", "side")
    work.git("push", "-q", "origin", "main")
    return work.head()


def test_count_is_right_after_every_way_to_move_a_ref(scene: Scene) -> None:
    client = scene.client
    assert stored(scene) == {"refs/heads/main": 1}
    for number in range(3):
        create_commit(client, "ada/tiny", {"f": b"%d" % number})
    assert total(scene) == 4
    assert client.post(f"{REPO}/branch/dev").status_code == 200
    assert client.post(f"{REPO}/branch/void", json={"emptyBranch": True}).status_code == 200
    assert client.post(f"{REPO}/tag/main", json={"tag": "v1", "message": "As published"}).status_code == 200
    assert client.post(f"{REPO}/tag/main", json={"tag": "light"}).status_code == 200
    assert send_commit(client, "ada/tiny", {"g": b"1"}, query="?create_pr=1").status_code == 200
    create_commit(client, "ada/tiny", {"h": b"1"}, rev="refs/pr/1")
    assert stored(scene) == counted(scene) == {
        "refs/heads/main": 4,
        "refs/heads/dev": 4,
        "refs/heads/void": 1,
        "refs/tags/v1": 4,
        "refs/tags/light": 4,
        "refs/pr/1": 6,
    }  # fmt: skip
    assert (total(scene, "v1"), total(scene, "refs%2Fpr%2F1"), total(scene, "void")) == (4, 6, 1)
    merge(scene)
    assert stored(scene) == counted(scene)
    assert total(scene) == 9
    work = scene.clone("again")
    work.git("reset", "-q", "--hard", "HEAD~1")
    work.commit("instead")
    work.git("push", "-q", "-f", "origin", "main", "main:copy", "main~2:refs/tags/older")
    assert stored(scene) == counted(scene)
    assert client.post(f"{REPO}/super-squash/main", json={"message": "One"}).status_code == 200
    assert stored(scene) == counted(scene)
    assert (stored(scene)["refs/heads/main"], total(scene)) == (1, 1)
    blob = work.git("rev-parse", "HEAD:f")
    work.git("push", "-q", "origin", f"{blob}:refs/tags/no-commit")
    assert stored(scene)["refs/tags/no-commit"] == 0


@pytest.mark.limits(counting_seconds=0)
def test_count_missed_at_the_push_is_added_later(scene: Scene) -> None:
    sha = merge(scene)
    assert stored(scene) == {"refs/heads/main": None}
    # Short enough to be counted during the request, like the history of any commit.
    assert total(scene) == total(scene, sha[:10]) == 6
    create_commit(scene.client, "ada/tiny", {"f": b"1"})
    assert stored(scene) == {"refs/heads/main": None}

    async def recount(hub: Hub) -> bool:
        return await CommitCounter(hub.repos).step()

    assert scene.hub.call(recount) is False
    assert stored(scene) == counted(scene) == {"refs/heads/main": 7}
    create_commit(scene.client, "ada/tiny", {"f": b"2"})
    assert stored(scene) == {"refs/heads/main": 8}
