"""O72: storage used by a guest's pull requests and uploads is charged to the guest, and limited."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.bed.engines import Engine
from tests.bed.people import PASSWORD, create_organization
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import create_repo, send_commit, send_large, send_lines

from hubgate.server.accounts.own_account import delete_own
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import DAY, SECOND
from hubgate.server.hub.context import Limits

MAX_BYTES = 1_000_000


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="2", guest_bytes=str(MAX_BYTES)) as opened:
        yield opened


def announced(content: bytes) -> dict[str, object]:
    return {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}


def large(content: bytes, path: str = "model.bin") -> tuple[str, dict[str, object]]:
    return "lfsFile", {"path": path, "algo": "sha256", **announced(content)}


def test_o72_open_pull_requests_of_a_guest_are_limited(scene: PublicRepo) -> None:
    first, _ = scene.create_pull_request({"1.txt": b"1"})
    scene.create_pull_request({"2.txt": b"2"})
    before, objects = scene.refs(), scene.objects
    refused = scene.propose({"3.txt": b"3"})
    assert (refused.status_code, "2 open pull requests" in refused.json()["error"]) == (403, True), refused.text
    assert scene.refs() == before
    assert scene.objects == objects, "a refused commit leaves no objects"
    assert scene.propose({"hers.txt": b"3"}, by=scene.ada).status_code == 200, "a writer has no such limit"
    create_repo(scene.ada, "other")
    assert scene.propose({"3.txt": b"3"}, repo="ada/other").status_code == 200, "the limit is for each repo"
    assert scene.set_status(first, "closed").status_code == 200
    assert scene.propose({"3.txt": b"3"}).status_code == 200
    again = scene.set_status(first, "open", by=scene.eve)
    assert again.status_code == 403, again.text
    assert scene.set_status(first, "open", by=scene.ada).status_code == 200, "the owner has the last word"


def test_o72_concurrently_opened_pull_requests_stay_within_the_limit(scene: PublicRepo) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: scene.propose({f"{n}.txt": b"x"}).status_code, range(8)))
    assert sorted(answers) == [200, 200] + [403] * 6
    assert len([ref for ref in scene.refs() if ref.startswith("refs/pr/")]) == 2


def test_o72_opening_and_closing_in_a_loop_is_limited(scene: PublicRepo) -> None:
    """A closed pull request still has its ref, which is advertised to every clone."""
    for number in range(40):
        answer = scene.propose({f"{number}.txt": b"x"})
        if answer.status_code != 200:
            break
        num = answer.json()["pullRequestUrl"].rpartition("/")[2]
        assert scene.set_status(num, "closed", by=scene.eve).status_code == 200
    assert (answer.status_code, number) == (403, 20)
    assert scene.eve.delete(f"{API}/discussions/1/ref").status_code == 200
    assert "refs/pr/1" not in scene.refs()
    assert scene.propose({"last.txt": b"x"}).status_code == 200


@pytest.mark.parametrize("how", ["regular", "large by name"])
def test_o72_bytes_in_commits_of_a_guest_are_limited(scene: PublicRepo, how: str) -> None:
    name = "text" if how == "regular" else "weights.bin"
    scene.create_pull_request({f"1-{name}": b"1" * 600_000})
    objects = scene.objects
    refused = scene.propose({f"2-{name}": b"2" * 600_000})
    assert (refused.status_code, "1,000,000 bytes" in refused.json()["error"]) == (403, True), refused.text
    # Also to a pull request of their own.
    assert send_commit(scene.eve, REPO, {f"2-{name}": b"2" * 600_000}, rev="refs/pr/1").status_code == 403
    assert scene.objects == objects, "nothing is half written"
    assert scene.propose({"small.txt": b"2"}).status_code == 200
    assert scene.propose({f"2-{name}": b"2" * 600_000}, by=scene.ada).status_code == 200


def test_o72_bytes_are_counted_over_all_repos_until_the_pull_request_is_removed(scene: PublicRepo) -> None:
    num, _ = scene.create_pull_request({"1.txt": b"1" * 600_000})
    create_repo(scene.ada, "other")
    assert scene.propose({"2.txt": b"2" * 600_000}, repo="ada/other").status_code == 403
    assert scene.set_status(num, "closed").status_code == 200
    assert scene.propose({"2.txt": b"2" * 600_000}, repo="ada/other").status_code == 403, "closed is not removed"
    assert scene.remove(num).status_code == 200
    assert scene.propose({"2.txt": b"2" * 600_000}, repo="ada/other").status_code == 200


def test_o72_bytes_in_pushes_of_a_guest_are_limited(scene: PublicRepo) -> None:
    scene.create_pull_request({"1.txt": b"1"})
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    before, objects = scene.refs(), scene.objects
    noise = b"".join(hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(40_000))
    sha = work.commit("noise.txt", noise)
    said = work.fails("push", "origin", "HEAD:refs/pr/1")
    assert "1,000,000 bytes" in said
    # Not even where the push could not move the ref.
    assert "1,000,000 bytes" in work.fails("push", "--force", "origin", "HEAD:refs/pr/1", "HEAD:refs/heads/dev")
    assert scene.refs() == before
    assert scene.objects == objects
    assert scene.eve.get(f"{API}/revision/{sha}").status_code == 404
    work.git("reset", "-q", "--hard", "HEAD~1")
    head = work.commit("small.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    assert scene.refs()["refs/pr/1"] == head


def test_o72_uploads_without_a_pull_request_are_charged_at_once_and_dropped_later(scene: PublicRepo) -> None:
    contents = [bytes([65 + number]) * 600_000 for number in range(2)]
    oid = send_large(scene.eve, REPO, contents[0])
    refused = scene.batch(scene.eve, announced(contents[1]))
    assert (refused.status_code, "1,000,000 bytes" in refused.json()["message"]) == (403, True), refused.text
    assert scene.batch(scene.eve, announced(contents[0])).status_code == 200, "announcing it again costs nothing"
    assert scene.storage() == (0, 0), "the owner's figures stay the owner's"
    scene.hub.clock.advance(3 * DAY / SECOND)
    scene.run_housekeeping()
    answer = scene.batch(scene.eve, announced(contents[1]))
    assert answer.status_code == 200, answer.text
    missing = send_lines(scene.eve, REPO, large(contents[0]), query="?create_pr=1")
    assert (missing.status_code, oid in missing.json()["error"]) == (422, True)


def test_o72_announced_bytes_are_charged_before_the_upload(scene: PublicRepo) -> None:
    """Also many small concurrent announcements."""
    asked = [announced(bytes([number]) * 150_000) for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda one: scene.batch(scene.eve, one).status_code, asked))
    assert sorted(answers) == [200] * 6 + [403] * 6
    assert scene.batch(scene.ada, *asked).status_code == 200


@pytest.mark.one_engine
def test_o72_call_order_of_existing_clients_works(scene: PublicRepo) -> None:
    """preupload, then the LFS batch, then the commit that opens the pull request."""
    content = b"w" * 600_000
    asked = {"files": [{"path": "model.bin", "size": len(content), "sample": ""}]}
    said = scene.eve.post(f"{API}/preupload/main?create_pr=1", json=asked)
    assert said.json()["files"][0]["uploadMode"] == "lfs", said.text
    send_large(scene.eve, REPO, content)
    opened = send_lines(scene.eve, REPO, large(content), query="?create_pr=1")
    assert opened.status_code == 200, opened.text
    scene.hub.clock.advance(3 * DAY / SECOND)
    scene.run_housekeeping()
    fetched = scene.ada.get(f"/{REPO}/resolve/refs%2Fpr%2F1/model.bin")
    assert fetched.content == content, "a pull request took it up"
    assert scene.storage() == (0, 0)
    # The same file in a second pull request is stored once and charged once.
    assert send_lines(scene.eve, REPO, large(content, "again.bin"), query="?create_pr=1").status_code == 200


@pytest.mark.one_engine
def test_o72_upload_by_a_user_who_cannot_open_a_pull_request_is_rejected(scene: PublicRepo) -> None:
    scene.ada.put(f"{API}/settings", json={"discussionsDisabled": True})
    assert scene.batch(scene.eve, announced(b"x" * 10)).status_code == 403
    assert scene.batch(scene.ada, announced(b"x" * 10)).status_code == 200


def test_o72_guests_files_that_the_owner_uses_are_charged_to_the_owner(scene: PublicRepo) -> None:
    content = b"w" * 600_000
    send_large(scene.eve, REPO, content)
    assert send_lines(scene.eve, REPO, large(content), query="?create_pr=1").status_code == 200
    assert scene.storage() == (0, 0)
    send_large(scene.ada, REPO, content)
    assert send_lines(scene.ada, REPO, large(content, "hers.bin")).status_code == 200
    assert scene.storage() == (600_000, 600_000)
    assert scene.remove(1).status_code == 200
    scene.run_housekeeping()
    assert scene.ada.get(f"/{REPO}/resolve/main/hers.bin").content == content


def test_o72_merging_ends_the_charge(scene: PublicRepo) -> None:
    content = b"w" * 600_000
    send_large(scene.eve, REPO, content)
    assert send_lines(scene.eve, REPO, large(content), query="?create_pr=1").status_code == 200
    work = scene.clone("adas", scene.ada_token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("push", "-q", "origin", "FETCH_HEAD:refs/heads/main")
    scene.run_housekeeping()
    assert scene.storage() == (600_000, 600_000), "what is on a branch is the owner's"
    assert scene.propose({"2.txt": b"2" * 600_000}).status_code == 200
    assert scene.remove(1).status_code == 200
    scene.run_housekeeping()
    assert scene.ada.get(f"/{REPO}/resolve/main/model.bin").content == content


@pytest.mark.one_engine
def test_o72_squashed_merge_retains_the_files(scene: PublicRepo) -> None:
    """The owner's commit refers to a large file by objects that only the pull request contained."""
    content = b"w" * 600_000
    send_large(scene.eve, REPO, content)
    assert send_lines(scene.eve, REPO, large(content), query="?create_pr=1").status_code == 200
    work = scene.clone("adas", scene.ada_token)
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("merge", "-q", "--squash", "FETCH_HEAD")
    work.git("commit", "-q", "-m", "squashed")
    work.git("push", "-q", "origin", "HEAD:main")
    assert scene.remove(1).status_code == 200
    scene.run_housekeeping()
    assert scene.ada.get(f"/{REPO}/resolve/main/model.bin").content == content
    assert scene.storage() == (600_000, 600_000)


def test_o72_guest_who_becomes_a_writer_is_no_longer_charged(scene: PublicRepo) -> None:
    create_organization(scene.hub, "acme", scene.ada_user, eve="read")
    create_repo(scene.ada, "acme/shared")
    for number in range(2):
        assert scene.propose({f"{number}.txt": b"x" * 300_000}, repo="acme/shared").status_code == 200
    assert scene.propose({"2.txt": b"2"}, repo="acme/shared").status_code == 403
    assert scene.propose({"2.txt": b"2" * 600_000}).status_code == 403
    role = scene.ada.put("/api/organizations/acme/members/eve/role", json={"role": "write"})
    assert role.status_code == 200, role.text
    assert scene.propose({"2.txt": b"2"}, repo="acme/shared").status_code == 200
    assert scene.propose({"2.txt": b"2" * 600_000}).status_code == 200


def test_o72_deleting_a_user_ends_their_charges(scene: PublicRepo) -> None:
    content = b"w" * 600_000
    oid, eve = send_large(scene.eve, REPO, content), scene.eve_user
    assert scene.storage() == (0, 0)
    scene.hub.call(lambda opened: delete_own(opened.accounts, eve, "eve", PASSWORD, SYSTEM))
    scene.run_housekeeping()
    fetched = scene.ada.post(
        f"/{REPO}.git/info/lfs/objects/batch",
        json={"operation": "download", "objects": [{"oid": oid, "size": len(content)}]},
    )
    assert fetched.json()["objects"][0]["error"]["code"] == 404


@pytest.mark.one_engine
def test_o72_pull_requests_do_not_count_as_the_owners_refs(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, Limits(refs=3)) as scene:
        for number in range(4):
            scene.create_pull_request({f"{number}.txt": b"x"})
        for branch in ("one", "two"):
            made = scene.ada.post(f"{API}/branch/{branch}", json={})
            assert made.status_code == 200, made.text
        assert scene.ada.post(f"{API}/branch/three", json={}).status_code == 422
        assert "at most 3 refs" in scene.clone("adas", scene.ada_token).fails("push", "origin", "HEAD:refs/heads/three")
        scene.create_pull_request({"more.txt": b"x"})
