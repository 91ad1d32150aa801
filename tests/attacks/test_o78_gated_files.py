"""A gated repo does not reveal which large files it has to users without access: their answers and charges are the
same, whether the repo has a file or not, until they have sent its content.
"""

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed import lean_http, packs
from tests.bed.engines import Engine
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_commit, head_of, send_commit, send_large, send_lines
from tests.bed.xet import XetClient, whole_file, xorb_of

from hubgate.server.hub.git.objects import pointer_text

UNKNOWN, IN_ONE_OBJECT, IN_CHUNKS = (random.Random(seed).randbytes(50_000) for seed in range(3))
CONTENTS = (UNKNOWN, IN_ONE_OBJECT, IN_CHUNKS)
BATCH = f"/{REPO}.git/info/lfs/objects/batch"


def oid_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@contextmanager
def gated_repo(engine: Engine, folder: Path, **settings: str) -> Iterator[PublicRepo]:
    """Ada's gated repo with two large files, to which Eve has no access."""
    with hub_with_public_repo(engine, folder, **settings) as scene:
        send_large(scene.ada, REPO, IN_ONE_OBJECT)
        XetClient(scene.ada, REPO).sign_in().upload(IN_CHUNKS)
        assert scene.ada.put(f"{API}/settings", json={"gated": "auto"}).status_code == 200
        yield scene


def announce(by: httpx.Client, content: bytes, transfer: str = "basic") -> dict[str, Any]:
    objects = [{"oid": oid_of(content), "size": len(content)}]
    answer = by.post(BATCH, json={"operation": "upload", "transfers": [transfer], "objects": objects})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["objects"][0]
    return found


def name_file(by: httpx.Client, content: bytes, size: int | None = None) -> httpx.Response:
    value = {"path": "w.bin", "algo": "sha256", "oid": oid_of(content), "size": size or len(content)}
    return send_lines(by, REPO, ("lfsFile", value), query="?create_pr=1")


@pytest.mark.one_engine
def test_o78_uploads_to_a_gated_repo_are_requested_alike(engine: Engine, tmp_path: Path) -> None:
    with gated_repo(engine, tmp_path) as scene:
        for content in CONTENTS:
            for transfer in ("basic", "xet"):
                assert "upload" in announce(scene.eve, content, transfer)["actions"]
            verify = announce(scene.eve, content)["actions"]["verify"]["href"]
            found = lean_http.post(verify, json={"oid": oid_of(content), "size": len(content)})
            assert found.status_code == 404, "it was only announced"
        # With access, the answer is the true one.
        assert scene.eve.post(f"{API}/ask-access", json={"fields": {}}).status_code == 200
        assert ["actions" in announce(scene.eve, content) for content in CONTENTS] == [True, False, False]


def test_o78_files_of_a_gated_repo_cannot_be_named_by_their_hash(engine: Engine, tmp_path: Path) -> None:
    with gated_repo(engine, tmp_path) as scene:
        opened = send_commit(scene.eve, REPO, {"idea.txt": b"an idea"}, query="?create_pr=1")
        assert opened.status_code == 200, opened.text
        before = head_of(scene.eve, REPO, "refs/pr/1")
        for content in CONTENTS:
            announce(scene.eve, content)
            pointer = pointer_text(oid_of(content), len(content))
            for refused in (
                name_file(scene.eve, content),
                name_file(scene.eve, content, size=7),
                send_commit(scene.eve, REPO, {"w.bin": pointer}, query="?create_pr=1"),
            ):
                expected = f"The large file {oid_of(content)} was not uploaded to this repo."
                assert (refused.status_code, refused.json()["error"]) == (422, expected)
            for text in (pointer, pointer_text(oid_of(content), 7)):
                blob = packs.blob(text)
                tree = packs.tree(("100644", "w.bin", blob))
                tip = packs.commit(tree, before)
                body = packs.commands([(before, tip.sha, "refs/pr/1")]) + packs.pack([blob, tree, tip])
                answer = packs.push(scene.hub.url, scene.eve_token, body, REPO)
                assert packs.report_of(answer)[1].startswith("ng refs/pr/1")
                assert "was never uploaded" in answer.text


@pytest.mark.parametrize("content", CONTENTS, ids=("unknown", "object", "chunks"))
def test_o78_user_without_access_can_use_what_the_user_has_sent(engine: Engine, tmp_path: Path, content: bytes) -> None:
    with gated_repo(engine, tmp_path) as scene:
        upload = announce(scene.eve, content)["actions"]
        assert lean_http.put(upload["upload"]["href"], content=content).status_code == 200
        sizes = {"oid": oid_of(content), "size": len(content)}
        assert lean_http.post(upload["verify"]["href"], json=sizes).status_code == 200
        assert "actions" not in announce(scene.eve, content)
        assert name_file(scene.eve, content).status_code == 200
        assert scene.eve.get(f"/{REPO}/resolve/refs%2Fpr%2F1/w.bin").status_code == 403
        assert scene.ada.get(f"/{REPO}/resolve/refs%2Fpr%2F1/w.bin").content == content
        # Another user without access learns nothing from that.
        with scene.another("bob") as bob:
            assert "actions" in announce(bob, content)
            assert name_file(bob, content).status_code == 422


@pytest.mark.one_engine
@pytest.mark.parametrize("content", CONTENTS, ids=("unknown", "object", "chunks"))
@pytest.mark.parametrize("way", ["object", "chunks", "commit"])
def test_o78_charges_in_a_gated_repo_are_the_same_for_every_file(
    engine: Engine, tmp_path: Path, content: bytes, way: str
) -> None:
    """The bytes that remain would reveal whether the owner has the file."""
    with gated_repo(engine, tmp_path, guest_bytes="120000") as scene:
        guest = XetClient(scene.eve, REPO, query="?create_pr=1").sign_in()
        if way == "object":
            upload = announce(scene.eve, content)["actions"]
            assert lean_http.put(upload["upload"]["href"], content=content).status_code == 200
            assert name_file(scene.eve, content).status_code == 200
        elif way == "chunks":
            guest.upload(content)
            assert guest.commit("w.bin", content).status_code == 200
        else:
            create_commit(scene.eve, REPO, {"w.bin": content}, query="?create_pr=1")
        for seed, size, expected in ((10, 60_000, 200), (11, 20_000, 403)):
            more = xorb_of(random.Random(seed).randbytes(size))
            assert guest.send_xorb(more).status_code == expected, size


@pytest.mark.one_engine
def test_o78_file_of_a_gated_repo_beyond_the_limit_is_rejected_like_any_other(engine: Engine, tmp_path: Path) -> None:
    with gated_repo(engine, tmp_path, guest_bytes="52000") as scene:
        guest = XetClient(scene.eve, REPO, query="?create_pr=1").sign_in()
        xorb = xorb_of(IN_CHUNKS)
        assert guest.send_xorb(xorb).status_code == 200
        assert guest.send_shard([whole_file(IN_CHUNKS, xorb)]).status_code == 200
        assert guest.send_xorb(xorb_of(UNKNOWN)).status_code == 403
