"""O70: files that consist of very many ranges of chunks do not occupy the event loop."""

import pytest
from tests.bed.call_counts import calls_on_loop
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, file_of, xorb_of_chunks

from hubgate.server import failpoint
from hubgate.server.errors import StorageUnavailable
from hubgate.server.hub.xet.hashes import hash_text
from hubgate.server.hub.xet.shard import Shard

CHUNKS = [b"%d" % number for number in range(2_000)]
EVERY_OTHER = range(0, len(CHUNKS), 2)


@pytest.mark.one_engine
def test_o70_ranges_of_a_file_are_searched_once_for_each_term(hub: RunningHub) -> None:
    """Comparing each term with each range would be quadratic."""
    xorb = xorb_of_chunks(CHUNKS)
    file = file_of(b"".join(CHUNKS[at] for at in EVERY_OTHER), *((xorb, at, at + 1) for at in EVERY_OTHER))
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, bob_user)) as bob:
        create_repo(ada, "open")
        create_repo(bob, "mine")
        owner, reader = XetClient(ada, "ada/open").sign_in(), XetClient(bob, "bob/mine").sign_in()
        assert owner.send_xorb(xorb).status_code == 200
        assert owner.send_shard([file]).status_code == 200
        with calls_on_loop(hub) as calls:
            assert reader.send_shard([file]).status_code == 200
        assert calls["<genexpr>"] < 10 * len(EVERY_OTHER)
        assert calls["unpack"] == 0, "in a thread"
        with calls_on_loop(hub) as calls:
            answer = owner.get(f"/v2/reconstructions/{hash_text(file.hash)}", range="bytes=0-0")
        assert answer.status_code == 200
        assert calls.total() < 5 * len(EVERY_OTHER)
        with calls_on_loop(hub) as calls:
            assert reader.look_up(xorb.table.hash_of(0)).status_code == 200
        assert calls.total() < 5 * len(EVERY_OTHER)


@pytest.mark.one_engine
@pytest.mark.limits(file_terms=3)
def test_o70_file_with_too_many_terms_is_rejected(hub: RunningHub) -> None:
    xorb = xorb_of_chunks(CHUNKS[:8])
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.send_xorb(xorb).status_code == 200
        for count, expected in ((3, 200), (4, 400)):
            parts = [(xorb, 2 * at, 2 * at + 1) for at in range(count)]
            file = file_of(b"".join(CHUNKS[start] for _, start, _ in parts), *parts)
            assert client.send_shard([file]).status_code == expected


@pytest.mark.one_engine
@pytest.mark.limits(lookup_chunks=15)
def test_o70_answer_of_a_lookup_is_bounded_by_its_chunks(hub: RunningHub) -> None:
    """Xorbs can have eight times as many chunks as usual."""
    xorbs = [xorb_of_chunks(CHUNKS[start : start + 10]) for start in range(0, 100, 10)]
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        for xorb in xorbs:
            assert client.send_xorb(xorb).status_code == 200
        file = file_of(b"".join(CHUNKS[:100]), *((xorb, 0, 10) for xorb in xorbs))
        assert client.send_shard([file]).status_code == 200
        answer = client.look_up(xorbs[0].table.hash_of(0))
        assert answer.status_code == 200
        assert len(list(Shard(answer.content).xorbs())) == 2


def test_o70_files_of_a_shard_are_registered_together(hub: RunningHub) -> None:
    """A statement for each file would lock the database for seconds."""
    xorb = xorb_of_chunks(CHUNKS[:200])
    files = [file_of(CHUNKS[at], (xorb, at, at + 1)) for at in range(200)]
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.send_xorb(xorb).status_code == 200
        with calls_on_loop(hub) as calls:
            assert client.send_shard(files).status_code == 200
        # With SQLite, transactions are not on the event loop, and only look-ups are counted.
        assert calls["one"] + calls["exec"] + calls["each"] < 5 * len(files)
        assert client.commit("w.bin", CHUNKS[199]).status_code == 200


@pytest.mark.limits(registered_files=10)
def test_o70_many_files_of_a_shard_are_registered_in_parts(hub: RunningHub) -> None:
    """Others write between the parts. A shard that fails after a part is sent again."""
    xorb = xorb_of_chunks(CHUNKS[:25])
    files = [file_of(CHUNKS[at], (xorb, at, at + 1)) for at in range(25)]

    def fail() -> None:
        del failpoint.armed["shard-part-registered"]
        raise StorageUnavailable

    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        assert client.send_xorb(xorb).status_code == 200
        failpoint.armed["shard-part-registered"] = fail
        assert client.send_shard(files).status_code == 503
        answers = [client.commit(f"{at}.bin", CHUNKS[at]).status_code for at in (0, 9, 10, 24)]
        assert answers == [200, 200, 422, 422]
        assert client.send_shard(files).status_code == 200
        answers = [client.commit(f"{at}.bin", CHUNKS[at]).status_code for at in (0, 10, 24)]
        assert answers == [200, 200, 200]


def test_o70_xorbs_of_others_are_looked_for_together(hub: RunningHub) -> None:
    xorbs = [xorb_of_chunks(CHUNKS[at : at + 2]) for at in range(0, 240, 2)]
    file = file_of(b"".join(CHUNKS[:240]), *((xorb, 0, 2) for xorb in xorbs))
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, bob_user)) as bob:
        create_repo(ada, "open")
        create_repo(bob, "mine")
        owner, reader = XetClient(ada, "ada/open").sign_in(), XetClient(bob, "bob/mine").sign_in()
        for xorb in xorbs:
            assert owner.send_xorb(xorb).status_code == 200
        assert owner.send_shard([file]).status_code == 200
        with calls_on_loop(hub) as calls:
            assert reader.send_shard([file]).status_code == 200
        assert calls["read_long"] < len(xorbs)
        assert reader.download(file) == b"".join(CHUNKS[:240])
