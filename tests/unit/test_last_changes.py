"""The commit that last changed a path."""

from pathlib import Path

import pygit2
import pytest

from hubgate.server.hub.git import history


class Repo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git = pygit2.init_repository(str(folder), bare=True)
        self.number = 0

    def commit(self, files: dict[str, str], *parents: str) -> str:
        """With exactly these files."""
        index = pygit2.Index()
        for path, text in files.items():
            index.add(pygit2.IndexEntry(path, self.git.create_blob(text.encode()), pygit2.enums.FileMode.BLOB))
        self.number += 1
        who = pygit2.Signature("Ada", "ada@example.org", 1_700_000_000 + self.number, 0)
        tree = index.write_tree(self.git)
        return str(self.git.create_commit(None, who, who, f"commit {self.number}", tree, list(parents)))

    async def last(self, commit: str, *paths: str, **limits: float) -> dict[str, str]:
        found = await history.last_changes(self.folder, commit, paths, **limits)  # type: ignore[arg-type]
        return {path: change.sha for path, change in found.items()}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path)


async def test_files_and_folders_have_the_commit_that_changed_them(repo: Repo) -> None:
    one = repo.commit({"a": "1", "d/e/f": "1", "d/g": "1"})
    two = repo.commit({"a": "2", "d/e/f": "1", "d/g": "1"}, one)
    three = repo.commit({"a": "2", "d/e/f": "3", "d/g": "1"}, two)
    same = repo.commit({"a": "2", "d/e/f": "3", "d/g": "1"}, three)
    expected = {"a": two, "d/e/f": three, "d/e": three, "d": three, "d/g": one}
    assert await repo.last(same, *expected) == expected


async def test_deleted_and_restored_file_has_its_latest_commit(repo: Repo) -> None:
    one = repo.commit({"a": "1", "b": "1"})
    two = repo.commit({"b": "1"}, one)
    three = repo.commit({"a": "1", "b": "1"}, two)
    turned = repo.commit({"a/inside": "1", "b": "1"}, three)
    assert await repo.last(three, "a", "b") == {"a": three, "b": one}
    assert await repo.last(turned, "a", "a/inside") == {"a": turned, "a/inside": turned}


async def test_merge_counts_as_a_change_only_if_neither_side_had_it(repo: Repo) -> None:
    base = repo.commit({"a": "1", "b": "1", "c": "1"})
    left = repo.commit({"a": "2", "b": "1", "c": "1"}, base)
    right = repo.commit({"a": "1", "b": "2", "c": "1"}, base)
    merged = repo.commit({"a": "2", "b": "2", "c": "3"}, left, right)
    assert await repo.last(merged, "a", "b", "c") == {"a": left, "b": right, "c": merged}


async def test_search_is_limited(repo: Repo) -> None:
    """The oldest commit looked at represents all older ones."""
    first = repo.commit({"a": "1", "n": "0"})
    head = first
    shas = [first] + [head := repo.commit({"a": "1", "n": str(number)}, head) for number in range(1, 6)]
    assert (await repo.last(head, "a"))["a"] == first
    assert await repo.last(head, "a", "n", max_commits=3) == {"a": shas[3], "n": head}
    assert (await repo.last(head, "a", seconds=-1.0))["a"] == head
