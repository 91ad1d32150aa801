"""git-lfs: large files are uploaded with a push and downloaded with a clone, however they were sent."""

import hashlib
import os
from pathlib import Path

import pytest
from tests.bed.git import WorkingCopy, repo_url, run_git
from tests.bed.git_lfs import with_git_lfs
from tests.bed.people import api
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.clients.conftest import Shared

MIB = 1024 * 1024
LARGE = 20 * MIB


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return with_git_lfs(home)


def cloned(shared: Shared, repo: str, folder: Path, variables: dict[str, str], token: str | None = None) -> WorkingCopy:
    url = repo_url(shared.hub.url, repo, token or shared.ada)
    done = run_git(folder.parent, "clone", "-q", url, str(folder), **variables)
    assert done.returncode == 0, done.stderr
    return WorkingCopy(folder)


def test_large_files_are_pushed_and_cloned(shared: Shared, tmp_path: Path, variables: dict[str, str]) -> None:
    with api(shared.hub, shared.ada) as ada:
        create_repo(ada, "lfs", private=True)
    one = cloned(shared, "ada/lfs", tmp_path / "one", variables)
    one.git("lfs", "track", "*.raw", **variables)
    # By a pattern of the repo, by a default pattern, and a small one.
    files = {"data/a.raw": os.urandom(MIB) * 20, "b.safetensors": os.urandom(LARGE // 4), "small.raw": b"few"}
    for path, content in files.items():
        one.write(path, content)
    one.git("add", ".", **variables)
    one.git("commit", "-q", "-m", "Large files", **variables)
    done = run_git(one.folder, "push", "origin", "main", **variables)
    assert done.returncode == 0, done.stderr
    assert "locksverify" not in done.stderr, "it takes it that there are no locks"
    two = cloned(shared, "ada/lfs", tmp_path / "two", variables)
    for path, content in files.items():
        assert (two.folder / path).read_bytes() == content, path
    assert two.git("status", "--porcelain", **variables) == ""
    with api(shared.hub, shared.ada) as ada:
        for path, content in files.items():
            found = ada.get(f"/ada/lfs/resolve/main/{path}")
            assert (found.content, found.headers["etag"]) == (content, f'"{hashlib.sha256(content).hexdigest()}"')
    # To an empty repo: every object of every commit, then the commits.
    with api(shared.hub, shared.ada) as ada:
        create_repo(ada, "lfs-again")
    again = repo_url(shared.hub.url, "ada/lfs-again", shared.ada)
    one.git("lfs", "push", "--all", again, **variables)
    one.git("push", "-q", "--force", again, "main", GIT_LFS_SKIP_PUSH="1", **variables)
    three = cloned(shared, "ada/lfs-again", tmp_path / "three", variables)
    assert (three.folder / "data/a.raw").read_bytes() == files["data/a.raw"]


def test_files_committed_over_http_are_cloned(shared: Shared, tmp_path: Path, variables: dict[str, str]) -> None:
    """Also a file that no pattern matches, but that is too large for git."""
    files = {"w.safetensors": os.urandom(100), "rows.txt": os.urandom(MIB) * 11, "notes.txt": b"text\n"}
    with api(shared.hub, shared.ada) as ada:
        create_repo(ada, "lfs-http")
        create_commit(ada, "ada/lfs-http", files)
    work = cloned(shared, "ada/lfs-http", tmp_path / "one", variables)
    for path, content in files.items():
        assert (work.folder / path).read_bytes() == content, path
    listed = work.git("lfs", "ls-files", "--name-only", **variables).split()
    assert sorted(listed) == ["rows.txt", "w.safetensors"]
    assert work.git("status", "--porcelain", **variables) == ""


def test_locks_are_not_supported(shared: Shared, tmp_path: Path, variables: dict[str, str]) -> None:
    with api(shared.hub, shared.ada) as ada:
        create_repo(ada, "lfs-locks")
    work = cloned(shared, "ada/lfs-locks", tmp_path / "one", variables)
    for arguments in (("locks",), ("lock", ".gitattributes")):
        done = run_git(work.folder, "lfs", *arguments, **variables)
        assert done.returncode != 0
        assert "This hub does not support locks." in done.stderr, done.stderr


def test_permissions_are_enforced(shared: Shared, tmp_path: Path, variables: dict[str, str]) -> None:
    with api(shared.hub, shared.ada) as ada:
        create_repo(ada, "lfs-rights")
    with api(shared.hub, shared.bob) as bob:
        assert send_commit(bob, "ada/lfs-rights", {"idea.txt": b"idea\n"}, query="?create_pr=1").status_code == 200
    work = cloned(shared, "ada/lfs-rights", tmp_path / "one", variables, shared.bob)
    work.git("fetch", "-q", "origin", "refs/pr/1", **variables)
    work.git("checkout", "-q", "-b", "idea", "FETCH_HEAD", **variables)
    work.write("w.safetensors", os.urandom(1000))
    work.git("add", ".", **variables)
    work.git("commit", "-q", "-m", "Weights", **variables)
    refused = run_git(work.folder, "push", "origin", "HEAD:main", **variables)
    assert "Only the owner may change this repo" in refused.stderr, refused.stderr
    work.git("push", "-q", "origin", "HEAD:refs/pr/1", **variables)
    wrong = repo_url(shared.hub.url, "ada/lfs-rights", "hf_wrong")
    refused = run_git(work.folder, "lfs", "push", "--all", wrong, **variables)
    assert "Invalid credentials in Authorization header" in refused.stderr, refused.stderr
    with api(shared.hub, shared.ada) as ada:
        assert len(ada.get("/ada/lfs-rights/resolve/refs%2Fpr%2F1/w.safetensors").content) == 1000
