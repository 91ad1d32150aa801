"""Guests who send chunks are charged like guests who send whole files."""

import random
from pathlib import Path

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.engines import Engine
from tests.bed.people import api
from tests.bed.public_repo import PublicRepo, hub_with_public_repo
from tests.bed.xet import XetClient, file_of, whole_file, xorb_of, xorb_of_chunks

from hubgate.server.clock import DAY, SECOND

PARTS = [random.Random(number).randbytes(40_000) for number in range(5)]
LARGE = xorb_of_chunks(PARTS)


def noise(seed: int, size: int = 100_000) -> bytes:
    return random.Random(seed).randbytes(size)


def test_o72_chunks_are_charged_to_the_guest(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest = XetClient(scene.eve, "ada/tiny", query="?create_pr=1").sign_in()
        # A file is charged once, not again when its chunks become a file.
        guest.upload(noise(1))
        guest.upload(noise(1))
        guest.upload(noise(2))
        refused = guest.send_xorb(xorb_of(noise(3)))
        assert (refused.status_code, "you may store 280,000 bytes" in refused.text) == (403, True)
        # A file is charged for its own size, however small the chunks are that it consists of.
        tiny = xorb_of(b"\0" * 100_000)
        assert guest.send_xorb(tiny).status_code == 200
        assert guest.send_shard([whole_file(b"\0" * 100_000, tiny)]).status_code == 403
        # Writers are not limited by it.
        XetClient(scene.ada, "ada/tiny").sign_in().upload(noise(3, 300_000))


@pytest.mark.one_engine
def test_o72_hub_without_guests_rejects_their_chunks(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="0") as scene:
        guest = XetClient(scene.eve, "ada/tiny", query="?create_pr=1").sign_in()
        assert guest.send_xorb(xorb_of(noise(1))).status_code == 403


def days_later(scene: PublicRepo) -> None:
    scene.hub.clock.advance(3 * DAY / SECOND)
    scene.run_housekeeping()


def guest_of(scene: PublicRepo) -> XetClient:
    return XetClient(scene.eve, "ada/tiny", query="?create_pr=1").sign_in()


def test_o72_xorb_is_charged_as_a_whole_if_a_file_uses_a_part_of_it(engine: Engine, tmp_path: Path) -> None:
    """It is stored as a whole."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest = guest_of(scene)
        assert guest.send_xorb(LARGE).status_code == 200
        assert guest.send_shard([file_of(PARTS[0], (LARGE, 0, 1))]).status_code == 200
        assert guest.send_xorb(xorb_of(noise(1))).status_code == 403
        assert guest.commit("w.bin", PARTS[0]).status_code == 200
        days_later(scene)
        assert guest_of(scene).send_xorb(xorb_of(noise(2))).status_code == 403
        # It is charged no more once it is deleted.
        assert scene.remove(1).status_code == 200
        for _ in range(3):
            days_later(scene)
        assert guest_of(scene).send_xorb(xorb_of(noise(3, 200_000))).status_code == 200


def test_o72_xorb_whose_parts_become_files_one_after_another_is_charged_once(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest = guest_of(scene)
        assert guest.send_xorb(LARGE).status_code == 200
        assert guest.send_shard([file_of(PARTS[0], (LARGE, 0, 1))]).status_code == 200
        assert guest.send_shard([file_of(b"".join(PARTS[1:]), (LARGE, 1, 5))]).status_code == 200
        assert guest.send_xorb(xorb_of(noise(1, 70_000))).status_code == 200


def test_o72_xorb_for_a_file_of_the_owner_stays_charged(engine: Engine, tmp_path: Path) -> None:
    """The file is the owner's, so nothing refers to the guest's xorb."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        XetClient(scene.ada, "ada/tiny").sign_in().upload(PARTS[0])
        guest = guest_of(scene)
        assert guest.send_xorb(LARGE).status_code == 200
        assert guest.send_shard([file_of(PARTS[0], (LARGE, 0, 1))]).status_code == 200
        assert guest.send_xorb(xorb_of(noise(1))).status_code == 403


def test_o72_xorb_stays_charged_after_most_of_its_files_were_dropped(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest = guest_of(scene)
        assert guest.send_xorb(LARGE).status_code == 200
        unused, used = file_of(b"".join(PARTS[:4]), (LARGE, 0, 4)), file_of(PARTS[4], (LARGE, 4, 5))
        assert guest.send_shard([unused, used]).status_code == 200
        assert guest.commit("w.bin", PARTS[4]).status_code == 200
        days_later(scene)
        assert guest_of(scene).send_xorb(xorb_of(noise(1))).status_code == 403


def test_o72_waiting_xorb_stays_charged_while_it_is_stored(engine: Engine, tmp_path: Path) -> None:
    """It is stored for as long as the repo receives others."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        assert guest_of(scene).send_xorb(LARGE).status_code == 200
        for number in range(4):
            scene.hub.clock.advance(0.9 * DAY / SECOND)
            assert guest_of(scene).send_xorb(xorb_of(b"%d" % number)).status_code == 200
            scene.run_housekeeping()
        assert guest_of(scene).send_xorb(xorb_of(noise(1))).status_code == 403


def test_o72_xorb_of_a_dropped_file_is_charged_while_it_is_stored(engine: Engine, tmp_path: Path) -> None:
    """No pull request uses the file, but the repo receives others, so the xorb is stored."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest_of(scene).upload(noise(1, 200_000))
        for number in range(4):
            scene.hub.clock.advance(0.9 * DAY / SECOND)
            assert guest_of(scene).send_xorb(xorb_of(b"%d" % number)).status_code == 200
            scene.run_housekeeping()
        assert guest_of(scene).send_xorb(xorb_of(noise(2))).status_code == 403


@pytest.mark.one_engine
def test_o72_file_beyond_the_limit_is_rejected_before_it_is_read(engine: Engine, tmp_path: Path) -> None:
    """A few bytes of chunks can be terabytes of a file."""
    zeros = xorb_of(b"\0" * 100_000)
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest = guest_of(scene)
        assert guest.send_xorb(zeros).status_code == 200
        for stored in (scene.hub.settings.data_dir / "xorbs").rglob("*"):
            if stored.is_file():
                stored.unlink()
        file = file_of(b"\0" * 300_000, *[(zeros, 0, len(zeros.table))] * 3)
        refused = guest.send_shard([file])
        assert (refused.status_code, "you may store 280,000 bytes" in refused.text) == (403, True)


@pytest.mark.one_engine
def test_o72_xorb_that_is_larger_than_its_content_stays_charged(engine: Engine, tmp_path: Path) -> None:
    """Each chunk has a header of eight bytes, so a file of tiny chunks is much smaller than what is stored for it."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        guest, answers = guest_of(scene), []
        for number in range(4):
            content = noise(number, 8_000)
            xorb = xorb_of_chunks(content[at : at + 1] for at in range(len(content)))
            answers.append(guest.send_xorb(xorb).status_code)
            if answers[-1] == 200:
                assert guest.send_shard([whole_file(content, xorb)]).status_code == 200
        assert answers == [200, 200, 200, 403]


@pytest.mark.one_engine
def test_o72_app_that_is_a_guest_in_its_users_repo_is_limited(engine: Engine, tmp_path: Path) -> None:
    """Its uploads do not count for the quota of the owner."""
    with hub_with_public_repo(engine, tmp_path, guest_bytes="280000") as scene:
        client = create_app(scene.hub, scene.ada_user, scopes=("openid", "write-discussions"))
        token = tokens_for(client, scene.ada_user, scope="openid write-discussions")["access_token"]
        with api(scene.hub, token) as app:
            guest = XetClient(app, "ada/tiny", query="?create_pr=1").sign_in()
            guest.upload(noise(1))
            guest.upload(noise(2))
            assert guest.send_xorb(xorb_of(noise(3))).status_code == 403


def test_o44_o72_permission_is_checked_again_after_the_verification(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path) as scene:
        guest = guest_of(scene)
        assert guest.send_xorb(LARGE).status_code == 200
        scene.at_failpoint("shard-verified", "UPDATE repos SET private = 1")
        assert guest.send_shard([whole_file(b"".join(PARTS), LARGE)]).status_code == 404
        assert XetClient(scene.ada, "ada/tiny").sign_in().commit("w.bin", b"".join(PARTS)).status_code == 422
