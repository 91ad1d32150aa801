"""Storage quotas: bytes of large files per user and organization, each content counted once."""

import hashlib
import random
from functools import partial

import pytest
from tests.bed import packs
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, file_of, whole_file, xorb_of, xorb_of_chunks

from hubgate.server.hub.quotas import store
from hubgate.server.hub.quotas.quotas import Usage, usage_of
from hubgate.server.resources import Hub

CODE = "StorageQuotaExceeded"


def set_quota(hub: RunningHub, kind: str, owner_id: str, size: int) -> None:
    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: store.set_exception(tx, kind, owner_id, size))

    hub.call(work)


def usage(hub: RunningHub, kind: str, owner_id: str) -> Usage:
    async def work(opened: Hub) -> Usage:
        return await usage_of(opened.repos, kind, owner_id)

    return hub.call(work)


def noise(seed: int, size: int = 100_000) -> bytes:
    return random.Random(seed).randbytes(size)


def test_content_counts_once_for_each_owner(hub: RunningHub) -> None:
    ada_user = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada_user)
    with api(hub, create_token(hub, ada_user)) as ada:
        for name in ("one", "two", "acme/three"):
            create_repo(ada, name)
        for repo in ("ada/one", "ada/two", "acme/three"):
            send_large(ada, repo, noise(1))
        assert (usage(hub, "user", ada_user.id).used, usage(hub, "org", acme.id).used) == (100_000, 100_000)
        stored = len(xorb_of(noise(2)).body)
        for repo in ("ada/one", "ada/two", "ada/one"):
            XetClient(ada, repo).sign_in().upload(noise(2))
        assert usage(hub, "user", ada_user.id).used == 100_000 + stored
        # What is sent, but not used yet, counts too.
        assert XetClient(ada, "ada/two").sign_in().send_xorb(xorb_of(noise(3))).status_code == 200
        assert usage(hub, "user", ada_user.id).used == 100_000 + stored + len(xorb_of(noise(3)).body)
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "two"}).status_code == 200
        assert usage(hub, "user", ada_user.id).used == 100_000 + stored


def test_upload_beyond_the_quota_is_rejected_in_every_way(hub: RunningHub) -> None:
    ada_user = create_user(hub, "ada")
    set_quota(hub, "user", ada_user.id, 250_000)
    with api(hub, create_token(hub, ada_user)) as ada:
        create_repo(ada, "tiny")
        send_large(ada, "ada/tiny", noise(1))
        client = XetClient(ada, "ada/tiny").sign_in()
        client.upload(noise(2))
        content, oid = noise(3), hashlib.sha256(noise(3)).hexdigest()
        announced = {"operation": "upload", "objects": [{"oid": oid, "size": len(content)}]}
        refusals = [
            ada.post("/api/models/ada/tiny/preupload/main", json={"files": [{"path": "w.bin", "size": len(content)}]}),
            ada.post("/ada/tiny.git/info/lfs/objects/batch", json=announced),
            client.send_xorb(xorb_of(content)),
            send_commit(ada, "ada/tiny", {"w.bin": content}),
        ]
        for refused in refusals:
            assert (refused.status_code, refused.headers["x-error-code"]) == (403, CODE), refused.text
            assert "may store 250,000 bytes" in refused.json()["error"]
        # What is there may be sent again, and small files are not counted.
        assert send_large(ada, "ada/tiny", noise(1))
        client.upload(noise(2))
        create_commit(ada, "ada/tiny", {"a.txt": b"text"})
        set_quota(hub, "user", ada_user.id, 0)
        assert client.send_xorb(xorb_of(content)).status_code == 200


@pytest.mark.one_engine
def test_known_size_at_the_same_path_is_not_announced_again(hub: RunningHub) -> None:
    """Clients announce whole folders, and then send only what has changed."""
    ada_user = create_user(hub, "ada")
    set_quota(hub, "user", ada_user.id, 150_000)
    with api(hub, create_token(hub, ada_user)) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        client.upload(noise(1))
        assert client.commit("w.bin", noise(1)).status_code == 200
        for size, expected in ((100_000, 200), (100_001, 403)):
            files = [{"path": "w.bin", "size": size, "sample": "AAAA"}]
            answer = ada.post("/api/models/ada/tiny/preupload/main", json={"files": files})
            assert answer.status_code == expected, size


def test_references_to_others_xorbs_count(hub: RunningHub) -> None:
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    xorb = xorb_of(noise(1))
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, bob_user)) as bob:
        create_repo(ada, "open")
        create_repo(bob, "mine")
        XetClient(ada, "ada/open").sign_in().upload(noise(1))
        set_quota(hub, "user", bob_user.id, 50_000)
        client = XetClient(bob, "bob/mine").sign_in()
        refused = client.send_shard([whole_file(noise(1), xorb)])
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, CODE)
        set_quota(hub, "user", bob_user.id, 150_000)
        assert client.send_shard([whole_file(noise(1), xorb)]).status_code == 200
        assert usage(hub, "user", bob_user.id).used == len(xorb.body)


def test_guests_files_count_once_a_writer_uses_them(hub: RunningHub) -> None:
    ada_user, eve_user = create_user(hub, "ada"), create_user(hub, "eve")
    set_quota(hub, "user", ada_user.id, 150_000)
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, eve_user)) as eve:
        create_repo(ada, "tiny")
        guest = XetClient(eve, "ada/tiny", query="?create_pr=1").sign_in()
        for number in range(2):
            guest.upload(noise(number))
        assert usage(hub, "user", ada_user.id).used == 0
        writer = XetClient(ada, "ada/tiny")
        assert writer.commit("0.bin", noise(0)).status_code == 200
        refused = writer.commit("1.bin", noise(1))
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, CODE)


@pytest.mark.one_engine
def test_merge_of_guests_files_beyond_the_quota_is_rejected_in_every_way(hub: RunningHub) -> None:
    ada_user, eve_user = create_user(hub, "ada"), create_user(hub, "eve")
    set_quota(hub, "user", ada_user.id, 150_000)
    ada_token = create_token(hub, ada_user)
    with api(hub, ada_token) as ada, api(hub, create_token(hub, eve_user)) as eve:
        create_repo(ada, "tiny")
        heads = []
        for number in range(2):
            # As one object, then as chunks.
            if number:
                XetClient(eve, "ada/tiny", query="?create_pr=1").sign_in().upload(noise(number))
            else:
                send_large(eve, "ada/tiny", noise(number))
            guest = XetClient(eve, "ada/tiny", query="?create_pr=1")
            heads.append(guest.commit(f"{number}.bin", noise(number)).json()["commitOid"])
        merge = "/api/models/ada/tiny/discussions/%d/merge"
        assert ada.post(merge % 1).status_code == 200
        assert usage(hub, "user", ada_user.id).used == 100_000
        refusals = [
            ada.post(merge % 2),
            ada.post("/api/models/ada/tiny/branch/more", json={"startingPoint": heads[1]}),
            ada.post(f"/api/models/ada/tiny/tag/{heads[1]}", json={"tag": "more"}),
        ]
        for refused in refusals:
            assert (refused.status_code, refused.headers["x-error-code"]) == (403, CODE), refused.text
        body = packs.commands([(None, heads[1], "refs/heads/more")]) + packs.pack([])
        assert "may store 150,000 bytes" in packs.push(hub.url, ada_token, body, "ada/tiny").text
        assert "more" not in ada.get("/api/models/ada/tiny/refs").text
        assert usage(hub, "user", ada_user.id).used == 100_000
        set_quota(hub, "user", ada_user.id, 250_000)
        assert ada.post(merge % 2).status_code == 200
        assert usage(hub, "user", ada_user.id).used == 100_000 + len(xorb_of(noise(1)).body)


def test_guests_file_counts_as_it_is_stored_once_a_writer_sends_it_too(hub: RunningHub) -> None:
    """The file is one of five chunks of the guest's xorb."""
    ada_user, eve_user = create_user(hub, "ada"), create_user(hub, "eve")
    set_quota(hub, "user", ada_user.id, 150_000)
    parts = [noise(number, 40_000) for number in range(5)]
    large, small = xorb_of_chunks(parts), xorb_of_chunks(parts[:1])
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, eve_user)) as eve:
        create_repo(ada, "tiny")
        guest = XetClient(eve, "ada/tiny", query="?create_pr=1").sign_in()
        assert guest.send_xorb(large).status_code == 200
        assert guest.send_shard([file_of(parts[0], (large, 0, 1))]).status_code == 200
        writer = XetClient(ada, "ada/tiny").sign_in()
        assert writer.send_xorb(small).status_code == 200
        refused = writer.send_shard([file_of(parts[0], (small, 0, 1))])
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, CODE)
        assert usage(hub, "user", ada_user.id).used == len(small.body)
        set_quota(hub, "user", ada_user.id, 300_000)
        assert writer.send_shard([file_of(parts[0], (small, 0, 1))]).status_code == 200
        assert usage(hub, "user", ada_user.id).used == len(small.body) + len(large.body)


def test_bytes_are_not_counted_at_every_upload(hub: RunningHub) -> None:
    """Counting takes time for each stored file, so uploads of many would take quadratic time."""

    def set_figure(size: int) -> None:
        hub.call(lambda opened: opened.db.write(lambda tx: store.set_used(tx, ada_user.id, size, opened.clock())))

    ada_user = create_user(hub, "ada")
    set_quota(hub, "user", ada_user.id, 250_000)
    with api(hub, create_token(hub, ada_user)) as ada:
        for name in ("one", "two"):
            create_repo(ada, name)
        one, two = XetClient(ada, "ada/one").sign_in(), XetClient(ada, "ada/two").sign_in()
        for number in range(2):
            one.upload(noise(number))
        assert one.send_xorb(xorb_of(noise(2))).status_code == 403
        # A figure that is too high is counted again; deletions do not change the figure.
        set_figure(250_000)
        assert one.send_xorb(xorb_of(noise(2, 10_000))).status_code == 200
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "one"}).status_code == 200
        assert two.send_xorb(xorb_of(noise(3, 200_000))).status_code == 200
        # A figure that is too low, which nothing but this test writes, is used for an hour.
        set_figure(0)
        assert two.send_xorb(xorb_of(noise(4))).status_code == 200
        hub.clock.advance(3601)
        two.sign_in()
        assert two.send_xorb(xorb_of(noise(5))).status_code == 403


def test_concurrent_uploads_do_not_exceed_the_quota_together(hub: RunningHub) -> None:
    ada_user = create_user(hub, "ada")
    set_quota(hub, "user", ada_user.id, 250_000)
    with api(hub, create_token(hub, ada_user)) as ada:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        xorbs = [xorb_of(noise(number, 50_000)) for number in range(8)]
        answers = run_concurrently([partial(client.send_xorb, xorb) for xorb in xorbs])
        assert sorted(answer.status_code for answer in answers) == [200] * 4 + [403] * 4
        assert usage(hub, "user", ada_user.id).used <= 250_000


def test_repo_cannot_be_moved_to_an_owner_without_room(hub: RunningHub) -> None:
    ada_user = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada_user)
    set_quota(hub, "org", acme.id, 50_000)
    with api(hub, create_token(hub, ada_user)) as ada:
        for name in ("large", "small"):
            create_repo(ada, name)
        XetClient(ada, "ada/large").sign_in().upload(noise(1))
        for name, expected in (("large", 403), ("small", 200)):
            answer = ada.post("/api/repos/move", json={"fromRepo": f"ada/{name}", "toRepo": f"acme/{name}"})
            assert answer.status_code == expected, answer.text
        assert ada.get("/api/models/ada/large").status_code == 200
        set_quota(hub, "org", acme.id, 150_000)
        answer = ada.post("/api/repos/move", json={"fromRepo": "ada/large", "toRepo": "acme/large"})
        assert answer.status_code == 200, answer.text
        assert usage(hub, "user", ada_user.id).used == 0


@pytest.mark.one_engine
def test_pages_show_the_quota(hub: RunningHub) -> None:
    ada_user = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada_user)
    with api(hub, create_token(hub, ada_user)) as ada:
        create_repo(ada, "tiny")
        send_large(ada, "ada/tiny", noise(1))
    with browser_of(hub, ada_user) as browser:
        assert "Large files use 100 kB." in browser.get("/settings/profile").text
        set_quota(hub, "user", ada_user.id, 5_000_000)
        set_quota(hub, "org", acme.id, 7_000_000)
        assert "Large files use 100 kB of 5.0 MB." in browser.get("/settings/profile").text
        assert "Large files use 0 bytes of 7.0 MB." in browser.get("/organizations/acme/settings/profile").text
