"""Cursors of histories of any shape: every commit once, in git's order, even if the branch changes."""

from pathlib import Path

import pygit2
import pytest
from tests.bed.git import run_git
from tests.bed.repos import create_commit
from tests.git.conftest import Scene
from tests.unit.test_walking import random_history

HISTORY = "/api/models/ada/tiny/commits/main"


def pushed(scene: Scene, folder: Path, head: str) -> list[str]:
    """As listed by git."""
    done = run_git(folder, "push", "-q", "-f", scene.url(token=scene.token), f"{head}:refs/heads/main")
    assert done.returncode == 0, done.stderr
    return run_git(folder, "rev-list", head).stdout.split()


def followed(scene: Scene, query: str) -> list[str]:
    answer, found = scene.client.get(f"{HISTORY}?{query}"), list[str]()
    while True:
        assert answer.status_code == 200, answer.text
        assert len(answer.headers.get("link", "")) < 3_500
        found += [commit["id"] for commit in answer.json()]
        if "next" not in answer.links:
            return found
        answer = scene.client.get(answer.links["next"]["url"])


@pytest.mark.one_engine
@pytest.mark.parametrize("limit", [1, 9])
def test_branches_and_merges_are_paged_completely(scene: Scene, limit: int) -> None:
    folder = scene.folder / "random_history"
    expected = pushed(scene, folder, random_history(folder, 7))
    assert followed(scene, f"limit={limit}") == expected
    assert followed(scene, f"limit={limit}&p=3") == expected[3 * limit :]


@pytest.mark.one_engine
def test_more_parallel_lines_than_a_cursor_names_are_paged_completely(scene: Scene) -> None:
    folder = scene.folder / "wide"
    repo = pygit2.init_repository(str(folder), bare=True)
    tree, second, tips = repo.TreeBuilder().write(), 1_700_000_000, list[pygit2.Oid]()
    who = pygit2.Signature("Ada", "ada@example.org", second, 0)
    root = repo.create_commit(None, who, who, "root", tree, [])
    for line in range(60):
        tip = root
        for step in range(3):
            who = pygit2.Signature("Ada", "ada@example.org", second + 1 + step, 0)
            tip = repo.create_commit(None, who, who, f"line {line} step {step}", tree, [tip])
        tips.append(tip)
    who = pygit2.Signature("Ada", "ada@example.org", second + 10, 0)
    expected = pushed(scene, folder, str(repo.create_commit(None, who, who, "all", tree, tips)))
    found = followed(scene, "limit=13")
    assert len(found) == len(expected) == 182
    assert found == expected


@pytest.mark.one_engine
def test_cursor_works_after_the_branch_is_deleted(scene: Scene) -> None:
    shas = [create_commit(scene.client, "ada/tiny", {"f": b"%d" % number}) for number in range(6)]
    first = scene.client.get(f"{HISTORY}?limit=3")
    create_commit(scene.client, "ada/tiny", {"f": b"later"})
    second = scene.client.get(first.links["next"]["url"])
    assert [commit["id"] for commit in second.json()] == shas[2::-1]
    assert second.headers["x-total-count"] == "8"
    scene.client.post("/api/models/ada/tiny/super-squash/main", json={"message": "One"})
    third = scene.client.get(second.links["next"]["url"])
    assert [commit["title"] for commit in third.json()] == ["initial commit"]
    assert "next" not in third.links
