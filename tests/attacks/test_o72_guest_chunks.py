"""Guests who send chunks are charged like guests who send whole files."""

import random
from pathlib import Path

from tests.bed.engines import Engine
from tests.bed.public_repo import hub_with_public_repo
from tests.bed.xet import XetClient, whole_file, xorb_of


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


def test_o72_hub_without_guests_rejects_their_chunks(engine: Engine, tmp_path: Path) -> None:
    with hub_with_public_repo(engine, tmp_path, guest_pull_requests="0") as scene:
        guest = XetClient(scene.eve, "ada/tiny", query="?create_pr=1").sign_in()
        assert guest.send_xorb(xorb_of(noise(1))).status_code == 403
