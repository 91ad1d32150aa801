"""Walks through histories: git's order, the same in pages as in one go, for any shape."""

import random
from pathlib import Path

import pygit2
import pytest
from tests.bed.git import run_git

from hubgate.server.hub.git import history
from hubgate.server.hub.git.history import NotACommit


def random_history(folder: Path, seed: int, commits: int = 120) -> str:
    """A history with branches and merges; some commits have the same date."""
    repo, chance = pygit2.init_repository(str(folder), bare=True), random.Random(seed)
    tree, tips, time = repo.TreeBuilder().write(), list[pygit2.Oid](), 1_700_000_000
    for number in range(commits):
        time += chance.choice((0, 1, 60))
        parents = list(dict.fromkeys(chance.choices(tips[-6:], k=chance.choice((1, 1, 1, 2, 3))))) if tips else []
        who = pygit2.Signature("Ada", "ada@example.org", time, 0)
        tips.append(repo.create_commit(None, who, who, f"commit {number}", tree, parents))
    who = pygit2.Signature("Ada", "ada@example.org", time + 1, 0)
    return str(repo.create_commit(None, who, who, "last", tree, tips[-6:]))


@pytest.mark.parametrize("seed", range(12))
async def test_pages_together_are_the_whole_history(tmp_path: Path, seed: int) -> None:
    head = random_history(tmp_path, seed)
    expected = run_git(tmp_path, "rev-list", head).stdout.split()
    starts, passed, found = [head], list[str](), list[str]()
    while starts:
        page = await history.page(tmp_path, starts, 0, 7, passed)
        found += [commit.sha for commit in page.commits]
        starts, passed = page.pending, page.visited
    assert len(found) == len(set(found)) == len(expected)
    assert set(found) == set(expected)
    in_one_go = await history.page(tmp_path, [head], 0, 1_000)
    assert [commit.sha for commit in in_one_go.commits] == found == expected


@pytest.mark.parametrize("skip", [0, 1, 50, 119, 400])
async def test_skipping_by_git_and_by_walking_give_the_same_result(tmp_path: Path, skip: int) -> None:
    head = random_history(tmp_path, 11)
    walked = await history.page(tmp_path, [head], skip, 10)
    ahead = await history.commits_beyond(tmp_path, [head], skip, 60.0) if skip else [head]
    skipped = await history.page(tmp_path, ahead, 0, 10)
    assert {commit.sha for commit in skipped.commits} == {commit.sha for commit in walked.commits}


async def test_walk_starts_only_at_commits(tmp_path: Path) -> None:
    head = random_history(tmp_path, 3, 5)
    tree = str(pygit2.Repository(str(tmp_path))[head].peel(pygit2.Commit).tree_id)
    for start in ("0" * 40, tree):
        with pytest.raises(NotACommit):
            await history.page(tmp_path, [head, start], 0, 10)
        with pytest.raises(NotACommit):
            await history.commits_beyond(tmp_path, [start], 10, 60.0)


async def test_long_history_is_not_counted_during_the_request(tmp_path: Path) -> None:
    repo = pygit2.init_repository(str(tmp_path), bare=True)
    tree, who = repo.TreeBuilder().write(), pygit2.Signature("Ada", "ada@example.org", 1_700_000_000, 0)
    line = list[pygit2.Oid]()
    for _ in range(history.MAX_COUNTED + 1):
        line.append(repo.create_commit(None, who, who, "a commit", tree, line[-1:]))
    assert await history.count_commits(tmp_path, str(line[-2])) == history.MAX_COUNTED
    assert await history.count_commits(tmp_path, str(line[-1])) is None
