"""O72: guests cannot use a repo as a file host: uploads that no pull request uses are visible to their sender and
writers only.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import api, create_token, create_user
from tests.bed.public_repo import REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import send_large, send_lines

CONTENT = b"w" * 50_000


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        yield opened


def readers(scene: PublicRepo, oid: str) -> set[str]:
    """The users who can download it."""
    mallory = create_token(scene.hub, create_user(scene.hub, "mallory"))
    with api(scene.hub, mallory) as other, scene.hub.client() as visitor:
        clients = {"ada": scene.ada, "eve": scene.eve, "mallory": other, "visitor": visitor}
        return {name for name, client in clients.items() if scene.download(client, oid, len(CONTENT)) == CONTENT}


def propose(scene: PublicRepo, oid: str) -> None:
    line = {"path": "model.bin", "algo": "sha256", "oid": oid, "size": len(CONTENT)}
    assert send_lines(scene.eve, REPO, ("lfsFile", line), query="?create_pr=1").status_code == 200


EVERYONE = {"ada", "eve", "mallory", "visitor"}


def test_o72_upload_is_hidden_until_a_pull_request_uses_it(scene: PublicRepo) -> None:
    oid = send_large(scene.eve, REPO, CONTENT)
    assert readers(scene, oid) == {"ada", "eve"}


@pytest.mark.one_engine
def test_o72_file_of_an_open_pull_request_is_readable(scene: PublicRepo) -> None:
    oid = send_large(scene.eve, REPO, CONTENT)
    propose(scene, oid)
    assert readers(scene, oid) == EVERYONE


@pytest.mark.one_engine
def test_o72_file_in_a_commit_is_readable(scene: PublicRepo) -> None:
    scene.create_pull_request({"model.bin": CONTENT})
    (line,) = scene.eve.get(f"/api/models/{REPO}/tree/refs%2Fpr%2F1?recursive=true").json()[-1:]
    assert readers(scene, line["lfs"]["oid"]) == EVERYONE


@pytest.mark.parametrize("removed", [False, True])
def test_o72_merged_file_is_readable_before_and_after_the_sweep(scene: PublicRepo, removed: bool) -> None:
    oid = send_large(scene.eve, REPO, CONTENT)
    propose(scene, oid)
    work = scene.clone("adas", scene.ada_token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("push", "-q", "origin", "FETCH_HEAD:main")
    if removed:
        assert scene.remove(1).status_code == 200
    with scene.hub.client() as visitor:
        assert scene.download(visitor, oid, len(CONTENT)) == CONTENT
    scene.run_housekeeping()
    assert readers(scene, oid) == EVERYONE


def test_o72_file_left_behind_by_a_force_push_is_dropped(scene: PublicRepo) -> None:
    oid = send_large(scene.eve, REPO, CONTENT)
    propose(scene, oid)
    work = scene.clone("eves")
    work.git("push", "-q", "--force", "origin", "HEAD:refs/pr/1")
    scene.run_housekeeping()
    assert readers(scene, oid) == set()


@pytest.mark.one_engine
def test_o72_guests_cannot_upload_where_they_cannot_open_pull_requests(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="0") as scene:
        refused = scene.batch(scene.eve, {"oid": "0" * 64, "size": 5})
        reason = scene.propose({"1.txt": b"1"}).json()["error"]
        assert (refused.status_code, refused.json().get("message")) == (403, reason)
        assert scene.batch(scene.ada, {"oid": "0" * 64, "size": 5}).status_code == 200
