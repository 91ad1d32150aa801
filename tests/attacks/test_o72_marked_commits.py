"""O72: a commit that only a pull request contains is marked wherever it is shown by its id, so that it does not
look like the owner's.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_commit

from hubgate.server.paging import encode_cursor

NOTICE = "This commit is part of a pull request and not on any branch of this repo."
HEADER = "x-pull-request-only"


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        yield opened


def pages_at(sha: str) -> list[str]:
    return [f"/{REPO}/{tail}" for tail in (f"commit/{sha}", f"tree/{sha}", f"blob/{sha}/evil.txt", f"commits/{sha}")]


def addresses_at(sha: str) -> list[str]:
    at_api = (f"revision/{sha}", f"tree/{sha}", f"commits/{sha}", f"compare/{sha}", f"compare/main..{sha}?raw=1")
    return [*(f"{API}/{tail}" for tail in at_api), f"/{REPO}/resolve/{sha}/evil.txt", f"/{REPO}/raw/{sha}/evil.txt"]


def assert_marked(scene: PublicRepo, sha: str) -> None:
    for address in addresses_at(sha):
        answer = scene.ada.get(address)
        assert (answer.status_code, answer.headers.get(HEADER)) == (200, "true"), address
    assert scene.ada.get(f"{API}/revision/{sha}").json()["pullRequestOnly"] is True
    paths = scene.ada.post(f"{API}/paths-info/{sha}", json={"paths": ["evil.txt"]})
    assert paths.headers.get(HEADER) == "true"
    with scene.hub.client() as visitor:
        for address in pages_at(sha):
            assert NOTICE in visitor.get(address).text, address


def assert_unmarked(scene: PublicRepo, rev: str) -> None:
    for address in addresses_at(rev):
        answer = scene.ada.get(address)
        assert (answer.status_code, HEADER in answer.headers) == (200, False), address
    assert "pullRequestOnly" not in scene.ada.get(f"{API}/revision/{rev}").json()
    with scene.hub.client() as visitor:
        for address in pages_at(rev):
            answer = visitor.get(address)
            assert (answer.status_code, NOTICE in answer.text) == (200, False), address


def test_o72_commit_of_a_pull_request_is_marked_until_it_is_on_a_branch(scene: PublicRepo) -> None:
    _, sha = scene.create_pull_request({"evil.txt": b"send me your keys\n"})
    assert_marked(scene, sha)
    assert scene.ada.get(f"{API}/revision/{sha[:10]}").headers[HEADER] == "true", "by a shortened id too"
    assert scene.ada.post(f"{API}/branch/taken", json={"startingPoint": sha}).status_code == 200
    assert_unmarked(scene, sha)


@pytest.mark.one_engine
def test_o72_owners_commits_are_not_marked(scene: PublicRepo) -> None:
    sha = create_commit(scene.ada, REPO, {"evil.txt": b"mine\n"})
    scene.create_pull_request({"other.txt": b"x"})
    assert_unmarked(scene, sha)
    assert scene.ada.delete(f"{API}/discussions/1").status_code == 200
    assert_unmarked(scene, sha)


def test_o72_pushed_commits_are_marked_even_if_the_ref_does_not_move(scene: PublicRepo) -> None:
    scene.create_pull_request({"first.txt": b"x"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    below, tip = work.commit("evil.txt"), work.commit("more.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert_marked(scene, below)
    assert_marked(scene, tip)
    # A push from an outdated state is rejected, but its objects may already be stored.
    work.git("reset", "-q", "--hard", "HEAD~1")
    lost = work.commit("evil.txt", "again\n")
    work.fails("push", "origin", "HEAD:refs/pr/1")
    assert scene.ada.get(f"{API}/revision/{lost}").headers.get(HEADER, "true") == "true"
    # Pushing the owner's commits again does not mark them.
    head = scene.ada.get(API).json()["sha"]
    assert HEADER not in scene.ada.get(f"{API}/revision/{head}").headers


@pytest.mark.one_engine
def test_o72_rejected_pull_request_leaves_no_unmarked_commit(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="1") as scene:
        scene.create_pull_request({"first.txt": b"x"})
        objects = scene.objects
        assert scene.propose({"evil.txt": b"x"}).status_code == 403
        assert scene.objects == objects


@pytest.mark.one_engine
def test_o72_squashed_pull_request_is_marked(scene: PublicRepo) -> None:
    scene.create_pull_request({"evil.txt": b"send me your keys\n"})
    assert scene.ada.post(f"{API}/super-squash/refs%2Fpr%2F1", json={}).status_code == 200
    assert_marked(scene, scene.refs()["refs/pr/1"])


def test_o72_merged_commit_is_not_marked(scene: PublicRepo) -> None:
    """Merged by git: the commit of the pull request is an ancestor of the branch."""
    _, sha = scene.create_pull_request({"evil.txt": b"fine after all\n"})
    assert_marked(scene, sha)
    create_commit(scene.ada, REPO, {"beside.txt": b"x"})
    work = scene.clone("adas", scene.ada_token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("merge", "-q", "--no-ff", "-m", "merged", "FETCH_HEAD")
    work.git("push", "-q", "origin", "HEAD:main")
    assert_unmarked(scene, sha)
    assert scene.remove(1).status_code == 200
    assert_unmarked(scene, sha)


@pytest.mark.one_engine
def test_o72_forged_cursor_does_not_show_a_pull_request_as_a_branch(scene: PublicRepo) -> None:
    _, sha = scene.create_pull_request({"evil.txt": b"x"})
    forged = encode_cursor((5, sha, "", 0))
    for address in (f"{API}/commits/main", f"/{REPO}/commits/main"):
        assert scene.ada.get(f"{address}?cursor={forged}").status_code == 400, address
    shown = scene.ada.get(f"{API}/commits/{sha}?cursor={forged}")
    assert (shown.status_code, shown.headers[HEADER]) == (200, "true")
    assert scene.ada.get(f"{API}/commits/refs%2Fpr%2F1?cursor={forged}").status_code == 200
