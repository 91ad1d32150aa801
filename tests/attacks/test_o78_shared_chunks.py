"""Deduplication tells nobody anything: chunks of others can neither be found, nor named, nor read.

A xorb that is shared between a private and a public repo is the hard case: readers of the public one may use exactly
the chunks that its files have.
"""

import random
import secrets
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, file_of, whole_file, xorb_of, xorb_of_chunks

from hubgate.server.clock import DAY, SECOND
from hubgate.server.hub.cas.cleanup import XorbCleanup
from hubgate.server.hub.repos.housekeeping import Housekeeping
from hubgate.server.hub.xet.hashes import hash_text, keyed_hash
from hubgate.server.hub.xet.shard import Shard
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

A_DAY = DAY // SECOND + 1
CONTENT = random.Random(3).randbytes(250_000)
PARTS = [random.Random(number).randbytes(40_000) for number in range(4)]


def chunks_shown(answer: httpx.Response, *chunks: bytes) -> list[bool]:
    """Whether the answer to a look-up contains each of these chunks."""
    assert answer.status_code == 200, answer.text
    shard = Shard(answer.content)
    assert shard.footer is not None
    listed = {chunk.hash for xorb in shard.xorbs() for chunk in xorb.chunks()}
    return [keyed_hash(chunk, shard.footer.key) in listed for chunk in chunks]


def test_o78_chunks_are_found_only_in_readable_files(hub: RunningHub) -> None:
    xorb = xorb_of(CONTENT)
    first = xorb.table.hash_of(0)
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, bob_user)) as bob:
        create_repo(ada, "secret", private=True)
        create_repo(ada, "other", private=True)
        create_repo(bob, "mine")
        stranger = XetClient(bob, "bob/mine").sign_in()
        owner = XetClient(ada, "ada/secret").sign_in()
        assert owner.send_xorb(xorb).status_code == 200
        assert owner.look_up(first).status_code == 404, "no file has it yet"
        assert owner.send_shard([whole_file(CONTENT, xorb)]).status_code == 200
        assert stranger.look_up(first).status_code == 404
        known = XetClient(ada, "ada/other").sign_in().look_up(first)
        assert chunks_shown(known, *(value for value, _ in xorb.table)) == [True] * len(xorb.table)
        assert first not in known.content, "hashes are shown only to those who know them"
        assert ada.put("/api/models/ada/secret/settings", json={"private": False}).status_code == 200
        assert chunks_shown(stranger.look_up(first), first) == [True]
        assert stranger.look_up(secrets.token_bytes(32)).status_code == 404
        assert stranger.get("/v1/chunks/default-merkledb/xyz").status_code == 400


def test_o78_upload_is_new_to_those_who_cannot_read_it(hub: RunningHub) -> None:
    xorb = xorb_of(CONTENT)
    file = whole_file(CONTENT, xorb)
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, bob_user)) as bob:
        create_repo(ada, "secret", private=True)
        create_repo(bob, "mine", private=True)
        owner, other = XetClient(ada, "ada/secret").sign_in(), XetClient(bob, "bob/mine").sign_in()
        owner.upload(CONTENT)
        # The hash alone is refused, in the same words as one that nobody has.
        unknown = xorb_of(secrets.token_bytes(1000))
        refused = [other.send_shard([whole_file(CONTENT, each)]) for each in (xorb, unknown)]
        assert [answer.status_code for answer in refused] == [400, 400]
        texts = [answer.text.replace(each.hash, "…") for answer, each in zip(refused, (xorb, unknown), strict=True)]
        assert texts[0] == texts[1]
        assert other.send_xorb(xorb).json() == {"was_inserted": True}
        assert other.send_xorb(xorb).json() == {"was_inserted": False}
        assert other.send_shard([file], [xorb]).status_code == 200
        # Neither depends on the other.
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "secret"}).status_code == 200
        sweep(hub)
        assert other.commit("w.bin", CONTENT).status_code == 200
        assert bob.get("/bob/mine/resolve/main/w.bin").content == CONTENT


def test_o78_public_file_does_not_open_the_rest_of_a_private_xorb(hub: RunningHub) -> None:
    """Ada's private and public files share a chunk, so they share a xorb."""
    xorb = xorb_of_chunks(PARTS)
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    hashes = [value for value, _ in xorb.table]
    with (
        api(hub, create_token(hub, ada_user)) as ada,
        api(hub, create_token(hub, bob_user)) as bob,
        api(hub) as anyone,
    ):
        other_repo = create_repo(ada, "secret", private=True)["id"]
        create_repo(ada, "open")
        create_repo(bob, "mine")
        owner, publisher = XetClient(ada, "ada/secret").sign_in(), XetClient(ada, "ada/open").sign_in()
        stranger = XetClient(bob, "bob/mine").sign_in()
        private_file = whole_file(b"".join(PARTS), xorb)
        assert owner.send_xorb(xorb).status_code == 200
        assert owner.send_shard([private_file], [xorb]).status_code == 200
        shared = file_of(PARTS[1], (xorb, 1, 2))
        assert publisher.send_shard([shared]).status_code == 200
        # The first chunk of each file is listed for look-ups; only that of the public one is found.
        assert stranger.look_up(hashes[0]).status_code == 404
        assert chunks_shown(stranger.look_up(hashes[1]), *hashes) == [False, True, False, False]
        assert chunks_shown(publisher.look_up(hashes[1]), *hashes) == [True] * 4
        # Even those who know all hashes can name only what they may read.
        assert stranger.send_shard([private_file]).status_code == 400
        assert stranger.send_shard([file_of(b"".join(PARTS[1:3]), (xorb, 1, 3))]).status_code == 400
        assert stranger.send_shard([file_of(PARTS[1], (xorb, 1, 2))]).status_code == 200
        assert stranger.send_xorb(xorb).json() == {"was_inserted": True}, "most of it is new to them"
        # The signed address is for the shared chunk.
        reader = XetClient(anyone, "ada/open").sign_in("read")
        assert reader.download(shared) == PARTS[1]
        ((fetch,),) = reader.get(f"/v1/reconstructions/{hash_text(shared.hash)}").json()["fetch_info"].values()
        start, end = xorb.table.stored_between(1, 2)
        assert fetch["url_range"] == {"start": start, "end": end - 1}
        assert anyone.get(fetch["url"]).content == xorb.body[start:end]
        for span in ("0-", f"{start - 1}-{end - 1}", f"{start}-{end}", f"{end}-", "-10", f"0-{len(xorb.body)}"):
            refused = anyone.get(fetch["url"], headers={"range": f"bytes={span}"})
            assert refused.status_code == 403, span
        parts = urlsplit(fetch["url"])
        query = dict(parse_qsl(parts.query))
        changed = [parts._replace(query=urlencode({**query, **more})).geturl() for more in (
            {"start": "0"}, {"end": str(len(xorb.body))}, {"expires": "9" * 17}, {"signature": "00" * 32},
            {"signature": "é"}, {"start": "-1"}, {"end": "x"},
        )]  # fmt: skip
        changed.append(parts._replace(path="/".join([*parts.path.split("/")[:3], other_repo, "0" * 32])).geturl())
        for address in changed:
            assert anyone.get(address).status_code == 403, address


def test_o78_unused_uploads_of_a_guest_are_hidden(hub: RunningHub) -> None:
    ada_user, eve_user, bob_user = (create_user(hub, name) for name in ("ada", "eve", "bob"))
    xorb = xorb_of(CONTENT)
    with (
        api(hub, create_token(hub, ada_user)) as ada,
        api(hub, create_token(hub, eve_user)) as eve,
        api(hub, create_token(hub, bob_user)) as bob,
    ):
        create_repo(ada, "tiny")
        create_repo(bob, "mine")
        guest = XetClient(eve, "ada/tiny", query="?create_pr=1").sign_in()
        stranger, elsewhere = XetClient(bob, "ada/tiny").sign_in("read"), XetClient(bob, "bob/mine").sign_in()
        file = guest.upload(CONTENT)
        path = f"/v2/reconstructions/{hash_text(file.hash)}"
        assert guest.get(path).status_code == 200
        assert stranger.get(path).status_code == 404, "a repo is not a file host for strangers"
        assert elsewhere.look_up(xorb.table.hash_of(0)).status_code == 404
        assert elsewhere.send_shard([file]).status_code == 400
        opened = guest.commit("w.bin", CONTENT)
        assert opened.status_code == 200, opened.text
        assert stranger.get(path).status_code == 200
        assert elsewhere.send_shard([file]).status_code == 200


def sweep(hub: RunningHub, days: int = 2) -> None:
    """Run housekeeping, and again after each day."""

    async def step(opened: Hub) -> None:
        await Housekeeping(opened.repos).step()

    for _ in range(days):
        hub.call(step)
        hub.clock.advance(A_DAY)
    hub.call(step)


def xorbs_in(hub: RunningHub) -> tuple[int, int]:
    """The number of xorbs in the database, and of stored objects."""

    async def work(opened: Hub) -> int:
        async def unit(tx: Tx) -> int:
            row = await tx.one("SELECT count(*) AS n FROM xorbs")
            return int(row["n"]) if row else 0

        return await opened.db.read(unit)

    files = [file for file in (hub.settings.data_dir / "xorbs").rglob("*") if file.is_file()]
    return hub.call(work), len(files)


def test_o78_unused_xorbs_are_deleted_and_used_ones_are_not(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        client.upload(CONTENT)
        assert client.commit("w.bin", CONTENT).status_code == 200
        unused = xorb_of(b"unused" * 10_000)
        assert client.send_xorb(unused).status_code == 200
        # An object of an upload that was killed before its row was added.
        lost = hub.settings.data_dir / "xorbs" / "ab" / "cd" / f"abcd{'0' * 28}"
        lost.parent.mkdir(parents=True)
        lost.write_bytes(b"lost")
        assert xorbs_in(hub) == (2, 3)
        sweep(hub, days=0)
        assert xorbs_in(hub) == (2, 3), "not before a day has passed"
        sweep(hub)
        assert xorbs_in(hub) == (1, 1)
        assert ada.get("/ada/tiny/resolve/main/w.bin").content == CONTENT
        late = XetClient(ada, "ada/tiny").sign_in()
        assert late.send_shard([whole_file(b"unused" * 10_000, unused)]).status_code == 400
        assert late.send_xorb(unused).json() == {"was_inserted": True}
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        sweep(hub)
        assert xorbs_in(hub) == (0, 0)


@pytest.mark.parametrize("again", ["shard", "xorb and shard"])
def test_o78_deletion_does_not_race_a_shard(hub: RunningHub, fault_count: int, again: str) -> None:
    """Either the shard is rejected, and the client sends the xorb again, or its file stays readable."""

    async def clean_up(opened: Hub) -> None:
        await XorbCleanup(opened.repos).step()

    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        outcomes = []
        for number in range(5 * fault_count):
            content = random.Random(number).randbytes(30_000)
            xorb = xorb_of(content)
            assert XetClient(ada, "ada/tiny").sign_in().send_xorb(xorb).status_code == 200
            hub.call(clean_up)
            hub.clock.advance(A_DAY)
            client = XetClient(ada, "ada/tiny").sign_in()

            def refer(client: XetClient = client, content: bytes = content) -> int:
                if again != "shard":
                    assert client.send_xorb(xorb_of(content)).status_code == 200
                return client.send_shard([whole_file(content, xorb_of(content))]).status_code

            status, _ = run_concurrently([refer, lambda: hub.call(clean_up)])
            outcomes.append(status)
            if status == 400:
                client.upload(content)
            sweep(hub, days=0)
            assert XetClient(ada, "ada/tiny").sign_in().commit(f"{number}.bin", content).status_code == 200
            assert ada.get(f"/ada/tiny/resolve/main/{number}.bin").content == content
        assert set(outcomes) <= ({200, 400} if again == "shard" else {200})
