"""`/events`: the changes of a repo, in order, with their original payloads."""

from typing import Any

import httpx
import pytest
from tests.bed import packs
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, send_commit
from tests.bed.running_hub import RunningHub

EVENTS = "/api/models/ada/tiny/events"


def listed(client: httpx.Client, query: str = "", repo: str = "ada/tiny") -> list[dict[str, Any]]:
    answer = client.get(f"/api/models/{repo}/events{query}")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def kinds(client: httpx.Client, repo: str = "ada/tiny") -> list[str]:
    events = [one["payload"]["event"] for one in listed(client, repo=repo)]
    return [f"{event['scope']}/{event['action']}" for event in events]


@pytest.mark.one_engine
def test_every_change_is_one_event(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "tiny", license="mit", files=[{"path": "a", "content": "x"}])
        assert kinds(client) == ["repo/create"], "the first commit is a part of it"
        first = head_of(client, "ada/tiny")
        second = create_commit(client, "ada/tiny", {"f": b"1"})
        repo = "/api/models/ada/tiny"
        assert client.post(f"{repo}/branch/dev", json={"startingPoint": first}).status_code == 200
        assert client.post(f"{repo}/branch/dev", json={"startingPoint": first, "overwrite": True}).status_code == 200
        assert client.post(f"{repo}/tag/main", json={"tag": "v1", "message": "One"}).status_code == 200
        assert client.delete(f"{repo}/tag/v1").status_code == 200
        assert send_commit(client, "ada/tiny", {"f": b"2"}, query="?create_pr=1").status_code == 200
        for refused in (
            client.post(f"{repo}/branch/dev"),
            client.delete(f"{repo}/branch/main"),
            send_commit(client, "ada/tiny", {"f": b"2"}, parent=first),
            send_commit(client, "ada/tiny", {}, delete=["none"]),
            client.put(f"{repo}/settings", json={"private": False}),
        ):
            assert refused.status_code in (200, 400, 404, 409, 412)
        payloads = [one["payload"] for one in listed(client, "?after=1")]
        (opened,) = [one for one in payloads if one["event"]["scope"] == "discussion"]
        assert (opened["event"]["action"], opened["discussion"]["num"]) == ("create", 1)
        updates = [one["updatedRefs"] for one in payloads if one is not opened]
        assert updates[0] == [{"ref": "refs/heads/main", "oldSha": first, "newSha": second}]
        assert updates[1] == [{"ref": "refs/heads/dev", "oldSha": None, "newSha": first}]
        ((tagged,), (untagged,), (proposed,)) = updates[2:]
        assert (tagged["ref"], tagged["oldSha"], tagged["newSha"] != second) == ("refs/tags/v1", None, True)
        assert (untagged["oldSha"], untagged["newSha"]) == (tagged["newSha"], None)
        assert (proposed["ref"], proposed["oldSha"]) == ("refs/pr/1", None)
        # The payload is stored: it has the repo's name at that time.
        before = listed(client)
        assert client.put(f"{repo}/settings", json={"private": True}).status_code == 200
        move = {"fromRepo": "ada/tiny", "toRepo": "acme/small", "type": "model"}
        assert client.post("/api/repos/move", json=move).status_code == 200
        after = listed(client, repo="acme/small")
        assert after[: len(before)] == before
        moved = after[-1]["payload"]
        assert (moved["repo"]["name"], moved["movedTo"]["name"]) == ("ada/tiny", "acme/small")
        assert after[-2]["payload"]["updatedConfig"] == {"private": True}
        assert [one["seq"] for one in after] == list(range(1, len(after) + 1))


@pytest.mark.one_engine
def test_three_refs_of_one_push_are_one_event(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with api(hub, token) as ada:
        create_repo(ada, "tiny")
        head = head_of(ada, "ada/tiny")
        refs = ["refs/heads/a", "refs/heads/b", "refs/tags/c"]
        body = packs.commands([(None, head, ref) for ref in refs]) + packs.pack([])
        assert packs.report_of(packs.push(hub.url, token, body)) == ["unpack ok", *(f"ok {ref}" for ref in refs)]
        (event,) = listed(ada, "?after=1")
        assert event["seq"] == 2
        assert [change["ref"] for change in event["payload"]["updatedRefs"]] == refs
        assert event["createdAt"].endswith("Z")
        assert "webhook" not in event["payload"]


def test_events_have_pages_and_need_permission(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        create_repo(owner, "tiny")
        for number in range(5):
            create_commit(owner, "ada/tiny", {"f": b"%d" % number})
        assert [one["seq"] for one in listed(anyone, "?after=2&limit=3")] == [3, 4, 5]
        assert listed(anyone, "?after=6") == listed(anyone, f"?after={10**17}") == []
        assert [one["seq"] for one in listed(anyone, "?limit=1")] == [1]
        for query in ("after=-1", "after=x", "limit=x", "after=1&after=2", "after=" + "9" * 30, "after=", "after=٣"):
            assert anyone.get(f"{EVENTS}?{query}").status_code == 400, query
        assert owner.put("/api/models/ada/tiny/settings", json={"private": True}).status_code == 200
        assert [client.get(EVENTS).status_code for client in (owner, other, anyone)] == [200, 404, 401]
        missing = owner.get("/api/models/ada/none/events")
        assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.one_engine
def test_events_of_a_private_time_stay_private(hub: RunningHub) -> None:
    """Otherwise readers of a published repo would learn its former name, and the ids of squashed commits, which can
    still be read.
    """
    ada, rob, eve = (create_user(hub, name) for name in ("ada", "rob", "eve"))
    create_organization(hub, "acme", ada, rob="read")
    tokens = [create_token(hub, user) for user in (ada, rob, eve)]
    with api(hub, tokens[0]) as owner, api(hub, tokens[1]) as member, api(hub, tokens[2]) as other, api(hub) as anyone:
        create_repo(owner, "acme/merger", private=True)
        secret = create_commit(owner, "acme/merger", {"README.md": b"the secret"})
        assert owner.post("/api/models/acme/merger/branch/buy-eve").status_code == 200
        assert owner.delete("/api/models/acme/merger/branch/buy-eve").status_code == 200
        moved = {"fromRepo": "acme/merger", "toRepo": "acme/tiny", "type": "model"}
        assert owner.post("/api/repos/move", json=moved).status_code == 200
        create_commit(owner, "acme/tiny", {"README.md": b"fit for all"})
        assert owner.post("/api/models/acme/tiny/super-squash/main").status_code == 200
        settings = "/api/models/acme/tiny/settings"
        assert owner.put(settings, json={"private": False}).status_code == 200
        shown = create_commit(owner, "acme/tiny", {"f": b"1"})
        assert owner.put(settings, json={"private": True}).status_code == 200
        create_commit(owner, "acme/tiny", {"f": b"2"})
        assert owner.put(settings, json={"private": False}).status_code == 200
        create_commit(owner, "acme/tiny", {"f": b"3"})

        for client in (owner, member):
            assert [one["seq"] for one in listed(client, repo="acme/tiny")] == list(range(1, 14))
        for client in (other, anyone):
            seen = listed(client, repo="acme/tiny")
            assert [one["seq"] for one in seen] == [8, 9, 12, 13]
            assert [one["payload"]["repo"]["private"] for one in seen] == [False] * 4
            assert not [word for word in ("merger", "buy-eve", secret) if word in str(seen)]
            assert shown in str(seen)
            # Pages are full, and continue where they ended.
            assert [one["seq"] for one in listed(client, "?limit=3", "acme/tiny")] == [8, 9, 12]
            assert [one["seq"] for one in listed(client, "?after=9&limit=1", "acme/tiny")] == [12]
            assert listed(client, "?after=13", "acme/tiny") == []


def test_page_of_large_events_is_shorter(hub: RunningHub) -> None:
    """A list in memory stays small, and the next request continues where it ended."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        at = "/api/models/ada/tiny/discussions"
        assert ada.post(at, json={"title": "Long texts"}).status_code == 200
        for _ in range(50):
            # Control characters have six bytes in JSON; a payload with them is cut.
            assert ada.post(f"{at}/1/comment", json={"comment": "\x01" * 65_000}).status_code == 201
        first = listed(ada, "?limit=1000")
        assert 30 < len(first) < 52
        assert first[5]["payload"]["truncated"] is True
        assert len(ada.get(EVENTS).content) < 9 * 1024 * 1024
        rest = listed(ada, f"?limit=1000&after={first[-1]['seq']}")
        assert [one["seq"] for one in [*first, *rest]] == list(range(1, 53))
