"""O72: a guest's storage stays charged while it is on disk, whichever pull request or rejected request stored it."""

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed import packs
from tests.bed.engines import Engine
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import send_commit, send_large, send_lines, text_file

from hubgate.server.clock import DAY, SECOND

MAX_BYTES = 1_000_000
TOO_MUCH = "1,000,000 bytes"
LARGE = b"w" * 600_000


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="3", guest_bytes=str(MAX_BYTES)) as opened:
        yield opened


def noise(seed: int, size: int = 600_000) -> bytes:
    return random.Random(seed).randbytes(size)


def large(content: bytes, path: str = "model.bin") -> tuple[str, dict[str, object]]:
    oid = hashlib.sha256(content).hexdigest()
    return "lfsFile", {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}


def has_room(scene: PublicRepo, size: int = MAX_BYTES - 50_000) -> bool:
    """Whether Eve may announce that much, which is most of her allowance."""
    asked = {"oid": hashlib.sha256(random.Random().randbytes(20)).hexdigest(), "size": size}
    return scene.batch(scene.eve, asked).status_code == 200


def propose_large(scene: PublicRepo, content: bytes = LARGE) -> str:
    send_large(scene.eve, REPO, content)
    opened = send_lines(scene.eve, REPO, large(content), query="?create_pr=1")
    assert opened.status_code == 200, opened.text
    sha: str = opened.json()["commitOid"]
    return sha


def close_and_delete(scene: PublicRepo, num: int) -> None:
    assert scene.set_status(num, "closed", by=scene.eve).status_code == 200
    assert scene.eve.delete(f"{API}/discussions/{num}/ref").status_code == 200


def days_later(scene: PublicRepo) -> None:
    scene.hub.clock.advance(3 * DAY / SECOND)
    scene.run_housekeeping()


@pytest.mark.parametrize("ending", ["deleted", "rewound and merged", "rewound and deleted", "removed"])
def test_o72_file_that_a_second_pull_request_contains_stays_charged(scene: PublicRepo, ending: str) -> None:
    """The second pull request refers to the commits of the first without sending an object."""
    propose_large(scene)
    scene.create_pull_request({"other.txt": b"x"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("push", "-q", "--force", "origin", "FETCH_HEAD:refs/pr/2")
    if "rewound" in ending:
        work.git("push", "-q", "--force", "origin", "origin/main:refs/pr/1")
    if "deleted" in ending:
        close_and_delete(scene, 1)
    if ending == "removed":
        assert scene.remove(1).status_code == 200
    days_later(scene)
    assert scene.ada.get(f"/{REPO}/resolve/refs%2Fpr%2F2/model.bin").content == LARGE
    assert not has_room(scene), "the file is stored"
    assert scene.storage() == (0, 0)
    assert scene.remove(2).status_code == 200
    scene.run_housekeeping()
    assert has_room(scene)
    assert scene.download(scene.ada, str(large(LARGE)[1]["oid"]), len(LARGE)) is None


def test_o72_merging_the_second_pull_request_ends_the_charge(scene: PublicRepo) -> None:
    propose_large(scene)
    scene.create_pull_request({"other.txt": b"x"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("push", "-q", "--force", "origin", "FETCH_HEAD:refs/pr/2")
    close_and_delete(scene, 1)
    scene.run_housekeeping()
    assert not has_room(scene)
    owners = scene.clone("adas", scene.ada_token)
    owners.git("fetch", "-q", "origin", "refs/pr/2")
    owners.git("push", "-q", "origin", "FETCH_HEAD:main")
    scene.run_housekeeping()
    assert has_room(scene)
    assert scene.storage() == (len(LARGE), len(LARGE))


def test_o72_files_of_a_pull_request_with_a_deleted_ref_are_dropped_with_their_charge(scene: PublicRepo) -> None:
    propose_large(scene)
    close_and_delete(scene, 1)
    assert not has_room(scene), "the file is still there"
    scene.run_housekeeping()
    assert has_room(scene)


def test_o72_file_that_the_owner_uses_is_no_longer_charged(scene: PublicRepo) -> None:
    propose_large(scene)
    assert not has_room(scene)
    assert send_lines(scene.ada, REPO, large(LARGE, "hers.bin")).status_code == 200
    assert has_room(scene)


@pytest.mark.one_engine
def test_o72_push_with_a_false_old_id_stores_nothing(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    refs, objects = scene.refs(), scene.objects
    for old in (refs["refs/heads/main"], None):
        blob = packs.blob(noise(1))
        tree = packs.tree(("100644", "noise", blob))
        made = packs.commit(tree, refs["refs/heads/main"])
        body = packs.commands([(old, made.sha, "refs/pr/1")]) + packs.pack([blob, tree, made])
        report = packs.report_of(packs.push(scene.hub.url, scene.eve_token, body))
        assert report == ["unpack ok", "ng refs/pr/1 fetch first"]
    assert (scene.refs(), scene.objects) == (refs, objects)
    assert has_room(scene), "nothing was stored, so nothing is charged"


@pytest.mark.one_engine
@pytest.mark.parametrize("to", ["?create_pr=1", "refs/pr/1"])
def test_o72_commit_that_names_a_missing_file_stores_nothing(scene: PublicRepo, to: str) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    objects = scene.objects
    query, rev = (to, "main") if to.startswith("?") else ("", to)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n"
    wrong = [
        large(b"never sent"),
        text_file("pointer.bin", pointer),
        text_file(".gitmodules", '[submodule "a"]\n\tpath = a\n\turl = -u./run\n'),
    ]
    for last in wrong:
        lines = (text_file("noise.txt", noise(1, 200_000).hex()), text_file("b.bin", noise(2, 100_000).hex()), last)
        refused = send_lines(scene.eve, REPO, *lines, rev=rev, query=query)
        assert refused.status_code == 422, refused.text
    assert scene.objects == objects
    assert has_room(scene), "nothing was stored, so nothing is charged"


def test_o72_commit_whose_ref_did_not_move_stays_charged_until_the_owner_removes_it(scene: PublicRepo) -> None:
    """Its objects stay on disk."""
    scene.create_pull_request({"1.txt": b"1"})
    scene.at_failpoint(
        "commit-objects-landed", "UPDATE discussions SET status = 'closed' WHERE num = CAST(:num AS bigint)", num="1"
    )
    refused = send_commit(scene.eve, REPO, {"noise.txt": noise(1)}, rev="refs/pr/1")
    assert refused.status_code >= 400, refused.text
    days_later(scene)
    assert not has_room(scene)
    assert scene.remove(1).status_code == 200
    assert has_room(scene)


def test_o72_pack_is_not_unpacked_beyond_the_guests_allowance(scene: PublicRepo) -> None:
    """Git stops reading, however much more is sent."""
    scene.create_pull_request({"1.txt": b"1" * 300_000})
    refs, objects = scene.refs(), scene.objects
    # Truncated: git would report that if it read to the end.
    cut = packs.pack([packs.blob(noise(1, 3_000_000))])[:-1000]
    body = packs.commands([(refs["refs/pr/1"], "1" * 40, "refs/pr/1")]) + cut
    answer = packs.push(scene.hub.url, scene.eve_token, body)
    assert packs.report_of(answer)[1] == "ng refs/pr/1 refused, see above"
    assert TOO_MUCH in packs.bands(answer.content)[2].decode()
    assert (scene.refs(), scene.objects) == (refs, objects)


@pytest.mark.one_engine
def test_o72_guest_at_the_limit_can_still_rewind(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    size = MAX_BYTES
    while size >= 4096:
        size = size if has_room(scene, size) else size // 2
    work = scene.clone("eves")
    work.git("push", "-q", "--force", "origin", "HEAD:refs/pr/1")
    work.commit("noise.txt", noise(1, 20_000))
    assert TOO_MUCH in work.fails("push", "origin", "HEAD:refs/pr/1")
