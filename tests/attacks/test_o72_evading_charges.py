"""O72: a guest's storage stays charged, however it is pushed, renamed and announced."""

import base64
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed import lean_http, packs
from tests.bed.apps import create_app, tokens_for
from tests.bed.engines import Engine
from tests.bed.people import api
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_commit, send_large, send_lines, text_file

MAX_BYTES = 1_000_000
TOO_MUCH = "1,000,000 bytes"


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="2", guest_bytes=str(MAX_BYTES)) as opened:
        yield opened


def noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(600_000)


def has_room(scene: PublicRepo) -> bool:
    """Whether Eve may announce most of her whole allowance."""
    content = random.Random().randbytes(20)
    asked = {"oid": hashlib.sha256(content).hexdigest(), "size": MAX_BYTES - 50_000}
    return scene.batch(scene.eve, asked).status_code == 200


def stored(scene: PublicRepo) -> int:
    return sum(path.stat().st_size for path in scene.objects)


def test_o72_app_without_write_permission_is_a_guest_even_for_the_owner(scene: PublicRepo) -> None:
    """The token decides, not the role behind it: Ada owns the repo and granted her app only `write-discussions`."""
    client = create_app(scene.hub, scene.ada_user, scopes=("openid", "write-discussions"))
    token = tokens_for(client, scene.ada_user, scope="openid write-discussions")["access_token"]
    limit = scene.hub.settings.guest_pull_requests
    content = b"x" * 5_000
    with api(scene.hub, token) as app:
        answers = [scene.propose({f"{n}.txt": b"x"}, by=app).status_code for n in range(limit + 1)]
        assert answers == [200] * limit + [403]
        before = scene.storage()
        send_large(app, REPO, content)
        assert scene.storage() == before, "not the owner's until a writer uses it"
        tebibyte = {"oid": "0" * 64, "size": 1 << 40}
        assert scene.batch(app, tebibyte).status_code == 403


def test_o72_commits_left_behind_by_a_force_push_stay_charged(scene: PublicRepo) -> None:
    """They stay on disk, so a pull request that is reset to the head of main has not been merged."""
    scene.create_pull_request({"1.txt": b"1"})
    work = scene.clone("eves")
    main = work.head()
    for number in range(2):
        work.git("checkout", "-q", main)
        work.commit("noise.txt", noise(number))
        if number == 0:
            work.git("push", "-q", "--force", "origin", "HEAD:refs/pr/1")
            work.git("push", "-q", "--force", "origin", f"{main}:refs/pr/1")
            scene.run_housekeeping()
    assert TOO_MUCH in work.fails("push", "--force", "origin", "HEAD:refs/pr/1")
    assert not has_room(scene)
    assert scene.remove(1).status_code == 200
    assert has_room(scene), "the owner had the last word"


def test_o72_commits_on_top_of_a_pull_request_are_merged_with_it(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    work.commit("noise.txt", noise(1))
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert not has_room(scene)
    work.git("push", "-q", f"{scene.hub.url.replace('://', f'://x:{scene.ada_token}@')}/{REPO}", "HEAD:main")
    scene.run_housekeeping()
    assert has_room(scene)


def test_o72_objects_outside_the_pull_request_are_rejected(scene: PublicRepo) -> None:
    """Otherwise merging a pull request that does not contain them would release their charge."""
    scene.create_pull_request({"1.txt": b"1"})
    refs, objects = scene.refs(), scene.objects
    moves = [(refs["refs/pr/1"], refs["refs/heads/main"], "refs/pr/1")]
    body = packs.commands(moves) + packs.pack([packs.blob(noise(1))])
    report = packs.report_of(packs.push(scene.hub.url, scene.eve_token, body))
    assert report == ["unpack ok", "ng refs/pr/1 refused, see above"]
    assert (scene.refs(), scene.objects) == (refs, objects)


def test_o72_guest_may_push_to_one_pull_request_at_a_time(scene: PublicRepo) -> None:
    """Otherwise merging one would release the charge for the other's storage."""
    for number in range(2):
        scene.create_pull_request({f"{number}.txt": b"1"})
    work = scene.clone("eves")
    objects = scene.objects
    work.git("checkout", "-q", "-b", "other", work.commit("noise.txt", noise(1)))
    said = work.fails("push", "--force", "origin", "HEAD~1:refs/pr/1", "HEAD:refs/pr/2")
    assert "one pull request at a time" in said
    assert scene.objects == objects
    without_objects = work.fails("push", "--force", "origin", "origin/main:refs/pr/1", "origin/main:refs/pr/2")
    assert "one pull request at a time" in without_objects


def renames(scene: PublicRepo) -> Iterator[httpx.Response]:
    """Renames of one file each, out of an owner's folder with many files."""
    create_commit(scene.ada, REPO, {f"big/{number}.txt": b"%d" % number for number in range(2000)})
    yield scene.propose({"1.txt": b"1"})
    for number in range(20):
        line = text_file(f"{number}.txt", "x", oldPath=f"big/{number}.txt")
        yield send_lines(scene.eve, REPO, line, rev="refs/pr/1")


def rules(scene: PublicRepo) -> Iterator[httpx.Response]:
    """Each commit adds a line for a large file to .gitattributes."""
    source = random.Random(1)
    text = b"".join(base64.b64encode(source.randbytes(45)) + b" x\n" for _ in range(4000))
    yield scene.propose({".gitattributes": text})
    oid = send_large(scene.eve, REPO, b"w" * 1000)
    for number in range(20):
        line = {"path": f"{number}.dat2", "algo": "sha256", "oid": oid, "size": 1000}
        yield send_lines(scene.eve, REPO, ("lfsFile", line), rev="refs/pr/1")


def folders(scene: PublicRepo) -> Iterator[httpx.Response]:
    """Each folder is an object."""
    yield scene.propose({"1.txt": b"1"})
    for number in range(60):
        yield send_lines(scene.eve, REPO, text_file("a/" * 100 + f"{number}.txt", ""), rev="refs/pr/1")


@pytest.mark.parametrize("commits", [renames, rules, folders])
def test_o72_small_commits_that_store_much_are_charged_for_it(scene: PublicRepo, commits: object) -> None:
    assert callable(commits)
    before = -1
    for answer in commits(scene):
        before = stored(scene) if before < 0 else before
        if answer.status_code == 403:
            assert TOO_MUCH in answer.json()["error"]
            break
        assert answer.status_code == 200, answer.text
    else:
        pytest.fail(f"never refused, and {stored(scene) - before:,} bytes stored")
    assert stored(scene) - before < MAX_BYTES


def test_o72_file_announced_twice_is_charged_by_its_larger_size(scene: PublicRepo) -> None:
    for number in range(2):
        content = noise(number)
        oid = hashlib.sha256(content).hexdigest()
        answer = scene.batch(scene.eve, {"oid": oid, "size": len(content)}, {"oid": oid, "size": 1})
        if number:
            assert (answer.status_code, TOO_MUCH in answer.json()["message"]) == (403, True), answer.text
            return
        upload = answer.json()["objects"][0]["actions"]["upload"]
        assert lean_http.put(upload["href"], content=content).status_code == 200


def test_o72_guests_cannot_continue_once_pull_requests_are_disabled(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    scene.create_pull_request({"2.txt": b"2"})
    assert scene.set_status(2, "closed").status_code == 200
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    work.commit()
    assert scene.ada.put(f"{API}/settings", json={"discussionsDisabled": True}).status_code == 200
    refs = scene.refs()
    refused = send_lines(scene.eve, REPO, text_file("more.txt"), rev="refs/pr/1")
    assert (refused.status_code, "turned off" in refused.json()["error"]) == (403, True), refused.text
    work.fails("push", "origin", "HEAD:refs/pr/1")
    assert scene.set_status(2, "open", by=scene.eve).status_code == 403
    assert scene.refs() == refs
    assert send_lines(scene.ada, REPO, text_file("more.txt"), rev="refs/pr/1").status_code == 200
    assert scene.set_status(1, "closed", by=scene.eve).status_code == 200, "leaving is free"


def test_o72_guests_do_not_make_a_repo_look_newer(scene: PublicRepo) -> None:
    """Lists of repos start with the most recently changed ones."""
    before = scene.ada.get(API).json()["lastModified"]
    scene.hub.clock.advance(1000)
    scene.create_pull_request({"1.txt": b"1"})
    assert send_lines(scene.eve, REPO, text_file("more.txt"), rev="refs/pr/1").status_code == 200
    assert scene.set_status(1, "closed", by=scene.eve).status_code == 200
    assert scene.eve.delete(f"{API}/discussions/1/ref").status_code == 200
    assert scene.ada.get(API).json()["lastModified"] == before
    create_commit(scene.ada, REPO, {"hers.txt": b"x"})
    assert scene.ada.get(API).json()["lastModified"] > before


def test_o72_empty_files_are_charged_for_their_disk_space(scene: PublicRepo) -> None:
    """Otherwise an unlimited number of rows and files would cost nothing."""
    asked = [{"oid": f"{number:064x}", "size": number % 2} for number in range(MAX_BYTES // 4096 + 1)]
    refused = scene.batch(scene.eve, *asked)
    assert (refused.status_code, TOO_MUCH in refused.json().get("message", "")) == (403, True), refused.text
    assert scene.batch(scene.eve, *asked[1:]).status_code == 200
