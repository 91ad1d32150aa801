"""Tokens for the storage API: each is for one repo, revision and right, and never permits more than its credential."""

import base64
import random

import pytest
from tests.bed.gated_repo import REPO, ask, create_scene, gate, handle
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.xet import XetClient, shard_of, whole_file, xorb_of

from hubgate.server.hub.xet.hashes import hash_text

CONTENT = random.Random(5).randbytes(200_000)


@pytest.mark.one_engine
def test_o78_token_is_for_one_repo(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "first", private=True)
        create_repo(ada, "second", private=True)
        first, second = (XetClient(ada, f"ada/{name}").sign_in() for name in ("first", "second"))
        file = first.upload(CONTENT)
        assert first.download(file) == CONTENT
        for version in ("v1", "v2"):
            assert second.get(f"/{version}/reconstructions/{hash_text(file.hash)}").status_code == 404
        # What was sent to one repo cannot be committed to another.
        assert second.commit("w.bin", CONTENT).status_code == 422
        assert first.commit("w.bin", CONTENT).status_code == 200


@pytest.mark.one_engine
def test_o78_storage_tokens_and_other_tokens_are_not_interchangeable(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada, api(hub) as anyone:
        create_repo(ada, "tiny", private=True)
        client = XetClient(ada, "ada/tiny").sign_in()
        storage = client.headers["authorization"].removeprefix("Bearer ")
        path = f"/xet/v1/chunks/default-merkledb/{'0' * 64}"
        assert anyone.get(path, headers={"authorization": f"Bearer {storage}"}).status_code == 404
        basic = base64.b64encode(f"ada:{storage}".encode()).decode()
        for header in ("", f"Bearer {token}", f"Basic {basic}", "Bearer", "Bearer xet_", f"Bearer {storage}x"):
            refused = anyone.get(path, headers={"authorization": header} if header else {})
            assert refused.status_code == 401, header
            assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        flipped = storage[:-2] + ("A" if storage[-2] != "A" else "B") + storage[-1]
        assert anyone.get(path, headers={"authorization": f"Bearer {flipped}"}).status_code == 401
        for address in ("/api/whoami-v2", "/api/models/ada/tiny", "/ada/tiny/resolve/main/README.md"):
            assert anyone.get(address, headers={"authorization": f"Bearer {storage}"}).status_code == 401, address


@pytest.mark.one_engine
def test_o78_token_expires(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        answer = XetClient(ada, "ada/tiny").request_token().json()
        client = XetClient(ada, "ada/tiny", headers={"authorization": f"Bearer {answer['accessToken']}"})
        seconds = answer["exp"] - hub.clock() // 1_000_000
        assert 300 <= seconds <= 3600
        hub.clock.advance(seconds - 1)
        assert client.look_up(bytes(32)).status_code == 404
        hub.clock.advance(2)
        assert client.look_up(bytes(32)).status_code == 401


@pytest.mark.one_engine
def test_o78_read_token_does_not_write(hub: RunningHub) -> None:
    xorb = xorb_of(CONTENT)
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        reader = XetClient(ada, "ada/tiny").sign_in("read")
        for path, body in (
            (f"/v1/xorbs/default/{xorb.hash}", xorb.body),
            ("/v1/shards", shard_of([whole_file(CONTENT, xorb)])),
            ("/v2/shards", shard_of([whole_file(CONTENT, xorb)])),
        ):
            assert reader.post(path, body).status_code == 403, path
        writer = XetClient(ada, "ada/tiny").sign_in()
        writer.upload(CONTENT)
        first = xorb.table.hash_of(0)
        assert [client.look_up(first).status_code for client in (writer, reader)] == [200, 404]


@pytest.mark.one_engine
def test_o78_tokens_are_issued_only_for_what_the_caller_may_do(hub: RunningHub) -> None:
    ada_user, bob_user = create_user(hub, "ada"), create_user(hub, "bob")
    with (
        api(hub, create_token(hub, ada_user)) as ada,
        api(hub, create_token(hub, ada_user, "read")) as reading_ada,
        api(hub, create_token(hub, bob_user)) as bob,
        api(hub) as anyone,
    ):
        create_repo(ada, "open")
        create_repo(ada, "secret", private=True)
        for client, repo, expected in (
            (ada, "ada/open", {"read": 200, "write": 200}),
            (reading_ada, "ada/secret", {"read": 200, "write": 403}),
            (bob, "ada/open", {"read": 200, "write": 403}),
            (bob, "ada/secret", {"read": 404, "write": 404}),
            (anyone, "ada/open", {"read": 200, "write": 401}),
            (anyone, "ada/secret", {"read": 401, "write": 401}),
        ):
            found = {right: XetClient(client, repo).request_token(right).status_code for right in expected}
            assert found == expected, (repo, found)
        for rev, right in (("nowhere", "read"), ("nowhere", "write"), ("0" * 40, "write")):
            refused = XetClient(ada, "ada/open", rev=rev).request_token(right)
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")
        # Existing clients name no revision if they will open a pull request.
        assert XetClient(bob, "ada/open", rev="None", query="?create_pr=1").request_token().status_code == 200
        assert XetClient(ada, "ada/open", rev="None").request_token().status_code == 404


def test_o78_lost_permission_ends_a_token_at_once(hub: RunningHub) -> None:
    ada_user, wim_user = create_user(hub, "ada"), create_user(hub, "wim")
    create_organization(hub, "acme", ada_user, wim="write")
    xorb = xorb_of(CONTENT)
    with api(hub, create_token(hub, ada_user)) as ada, api(hub, create_token(hub, wim_user)) as wim:
        create_repo(ada, "acme/tiny", private=True)
        client = XetClient(wim, "acme/tiny").sign_in()
        reader = XetClient(wim, "acme/tiny").sign_in("read")
        file = client.upload(CONTENT)
        assert reader.download(file) == CONTENT
        demoted = ada.put("/api/organizations/acme/members/wim/role", json={"role": "read"})
        assert demoted.status_code == 200, demoted.text
        assert client.send_xorb(xorb).status_code == 403
        assert client.send_shard([file]).status_code == 403
        assert reader.download(file) == CONTENT
        assert ada.delete("/api/organizations/acme/members/wim").status_code in (200, 204)
        for sender in (client, reader):
            assert sender.get(f"/v2/reconstructions/{hash_text(file.hash)}").status_code == 404
            assert sender.look_up(xorb.table.hash_of(0)).status_code == 404
        assert client.send_xorb(xorb).status_code == 404


def test_o78_revoked_credential_ends_its_tokens_at_once(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        plan = client.get(f"/v1/reconstructions/{hash_text(file.hash)}").json()
        (fetches,) = plan["fetch_info"].values()
        assert anyone.post("/api/credentials/revoke", json={"credentials": [token]}).status_code == 202
        stale = XetClient(anyone, "ada/tiny", headers=client.headers)
        assert stale.get(f"/v1/reconstructions/{hash_text(file.hash)}").status_code == 401
        assert stale.send_xorb(xorb_of(CONTENT)).status_code == 401
        # Addresses that were signed before work for some minutes.
        span = fetches[0]["url_range"]
        headers = {"range": f"bytes={span['start']}-{span['end']}"}
        assert anyone.get(fetches[0]["url"], headers=headers).status_code == 206
        hub.clock.advance(15 * 60)
        assert anyone.get(fetches[0]["url"], headers=headers).status_code == 403


def test_o78_deleted_repo_ends_its_tokens_and_addresses(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        client = XetClient(ada, "ada/tiny").sign_in()
        file = client.upload(CONTENT)
        fetches = next(iter(client.get(f"/v2/reconstructions/{hash_text(file.hash)}").json()["xorbs"].values()))
        assert ada.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        span = fetches[0]["ranges"][0]["bytes"]
        gone = anyone.get(fetches[0]["url"], headers={"range": f"bytes={span['start']}-{span['end']}"})
        assert gone.status_code == 404
        assert client.send_xorb(xorb_of(CONTENT)).status_code == 404
        assert client.get(f"/v2/reconstructions/{hash_text(file.hash)}").status_code == 404
        # A new repo of the same name is another repo.
        create_repo(ada, "tiny")
        assert client.send_xorb(xorb_of(CONTENT)).status_code == 404


def test_o78_gate_is_checked_at_every_use(hub: RunningHub) -> None:
    with create_scene(hub) as scene:
        writer = XetClient(scene.ada, REPO).sign_in()
        file = writer.upload(CONTENT)
        assert writer.commit("w.bin", CONTENT).status_code == 200
        before = XetClient(scene.bob, REPO).sign_in("read")
        assert before.download(file) == CONTENT
        gate(scene)
        path = f"/v2/reconstructions/{hash_text(file.hash)}"
        assert before.get(path).status_code == 403
        assert XetClient(scene.bob, REPO).request_token("read").status_code == 403
        # Who has no access may still open a pull request, but refer to nothing in the repo.
        guest = XetClient(scene.bob, REPO, query="?create_pr=1").sign_in()
        assert guest.get(path).status_code == 403
        assert guest.send_shard([file]).status_code == 400
        assert ask(scene.bob).status_code == 200
        assert handle(scene.ada, "accepted").status_code == 200
        assert before.get(path).status_code == 200
        assert guest.send_shard([file]).status_code == 200
