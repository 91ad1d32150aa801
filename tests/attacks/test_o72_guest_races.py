"""O72: files are dropped, or users deleted, during a guest's request."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import PASSWORD
from tests.bed.public_repo import REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import send_commit, send_large, send_lines

from hubgate.server import failpoint
from hubgate.server.accounts.own_account import delete_own
from hubgate.server.audit.model import SYSTEM

CONTENT = b"w" * 50_000
DROP = "DELETE FROM lfs_links WHERE oid = :oid"
DELETE = "DELETE FROM users WHERE id = :id"


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path) as opened:
        yield opened
    failpoint.armed.clear()


def pointer(oid: str) -> str:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(CONTENT)}\n"


@pytest.mark.parametrize("by", ["eve", "ada"])
def test_o72_commit_is_rejected_if_its_file_is_dropped_during_the_request(scene: PublicRepo, by: str) -> None:
    oid = send_large(scene.eve, REPO, CONTENT)
    objects = scene.objects
    scene.at_failpoint("guest-files-found", DROP, oid=oid)
    line = {"path": "model.bin", "algo": "sha256", "oid": oid, "size": len(CONTENT)}
    client, query = (scene.eve, "?create_pr=1") if by == "eve" else (scene.ada, "")
    refused = send_lines(client, REPO, ("lfsFile", line), query=query)
    assert (refused.status_code, oid in refused.json()["error"]) == (422, True), refused.text
    assert scene.objects == objects


@pytest.mark.parametrize("by", ["eve", "ada"])
def test_o72_push_is_rejected_if_its_file_is_dropped_during_the_request(scene: PublicRepo, by: str) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    oid = send_large(scene.eve, REPO, CONTENT)
    refs, objects = scene.refs(), scene.objects
    work = scene.clone("work", scene.eve_token if by == "eve" else scene.ada_token)
    work.commit("model.bin", pointer(oid))
    scene.at_failpoint("guest-files-found", DROP, oid=oid)
    said = work.fails("push", "--force", "origin", "HEAD:refs/pr/1" if by == "eve" else "HEAD:main")
    assert f"{oid}, which was never uploaded to this repo" in said
    assert (scene.refs(), scene.objects) == (refs, objects)


@pytest.mark.parametrize(
    ("to", "moment"),
    [
        ("?create_pr=1", "large-file-before-link"),
        ("?create_pr=1", "commit-objects-landed"),
        ("refs/pr/1", "large-file-before-link"),
        ("refs/pr/1", "commit-objects-landed"),
        ("refs/pr/1", "refs-before-move"),
    ],
)
def test_o72_commit_is_rejected_if_its_user_is_deleted_during_the_request(
    scene: PublicRepo, to: str, moment: str
) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    refs = scene.refs()
    scene.at_failpoint(moment, DELETE, id=scene.eve_user.id)
    query, rev = (to, "main") if to.startswith("?") else ("", to)
    refused = send_commit(scene.eve, REPO, {"model.bin": CONTENT}, rev=rev, query=query)
    assert (refused.status_code, refused.json()["error"]) == (404, "This account was deleted."), refused.text
    assert not failpoint.armed
    assert scene.refs() == refs


def test_o72_push_is_rejected_if_its_user_is_deleted_during_the_request(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    refs = scene.refs()
    work = scene.clone("eves")
    work.commit()
    scene.at_failpoint("refs-before-move", DELETE, id=scene.eve_user.id)
    assert "This account was deleted." in work.fails("push", "--force", "origin", "HEAD:refs/pr/1")
    assert scene.refs() == refs


def test_o72_upload_is_rejected_if_its_user_is_deleted_during_the_request(scene: PublicRepo) -> None:
    """The caller is authenticated before the body is received."""
    body = json.dumps({"operation": "upload", "objects": [{"oid": "0" * 64, "size": 5}]}).encode()
    eve = scene.eve_user

    def parts() -> Iterator[bytes]:
        yield body[:20]
        scene.hub.call(lambda opened: delete_own(opened.accounts, eve, "eve", PASSWORD, SYSTEM))
        yield body[20:]

    refused = scene.eve.post(f"/{REPO}.git/info/lfs/objects/batch", content=parts())
    assert refused.status_code in (401, 404), refused.text
