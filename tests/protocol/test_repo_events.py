"""Events of repos: the payloads recorded in contract/events, and the sequence numbers to request them by."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.protocol.golden import FOLDER, recorded

from hubgate.server.events.kinds import Kind

ROOT = Path(__file__).parents[2]
AGREED = {file.name.removesuffix(".json"): json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.json"))}
# Besides `event` and `repo`.
ALWAYS = {"event", "repo"}


@pytest.mark.one_engine
def test_recorded_payloads_match_the_contract(hub: RunningHub, tmp_path: Path) -> None:
    """A change here is a change for every receiver, to be made on purpose."""
    found = recorded(hub, tmp_path)
    assert sorted(found) == sorted(AGREED), "run: make contract"
    for name, payload in found.items():
        assert payload == AGREED[name], f"{name}; if this is meant, run: make contract"
        assert list(payload) == list(AGREED[name]), f"{name}: the order of members"


@pytest.mark.parametrize("name", AGREED)
def test_each_contract_payload_is_of_a_registered_kind(name: str) -> None:
    payload = AGREED[name]
    scope, action = payload["event"]["scope"], payload["event"]["action"]
    (kind,) = [kind for kind in Kind if (kind.scope, kind.action) == (scope, action)]
    assert name == f"{scope}.{action}" or name.startswith(f"{scope}.{action}.")
    assert set(payload) == {*ALWAYS, *kind.extras}


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_every_kind_is_in_the_contract_and_documented(kind: Kind) -> None:
    events = [(payload["event"]["scope"], payload["event"]["action"]) for payload in AGREED.values()]
    assert (kind.scope, kind.action) in events
    rows = [line for line in (ROOT / "docs/events.md").read_text().splitlines() if line.startswith("| `")]
    (row,) = [line for line in rows if line.startswith(f"| `{kind.scope}` | `{kind.action}` |")]
    assert kind.when in row
    for extra in kind.extras:
        assert f"`{extra}`" in row, f"docs/events.md: {extra} of {kind.scope}"


def numbers(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [event["seq"] for event in answer.json()]


@pytest.mark.one_engine
def test_follower_requests_events_after_a_number(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for number in range(4):
            create_commit(ada, "ada/tiny", {"n.txt": str(number).encode()})
        at = "/api/models/ada/tiny/events"
        assert numbers(ada.get(at)) == [1, 2, 3, 4, 5]
        assert numbers(ada.get(at, params={"after": 3})) == [4, 5]
        assert numbers(ada.get(at, params={"after": 1, "limit": 2})) == [2, 3]
        assert numbers(ada.get(at, params={"after": 5})) == []
        assert numbers(ada.get(at, params={"limit": 0})) == [1], "at least one"
        assert ada.get(at).json()[0]["createdAt"] == "2026-09-21T14:13:20.000Z"


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=1.5", "after=%00", "after=" + "9" * 30])
def test_invalid_number_is_rejected(sqlite_hub: RunningHub, query: str) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        answer = ada.get(f"/api/models/ada/tiny/events?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"]


@pytest.mark.one_engine
def test_events_are_for_users_who_may_see_the_repo(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    with api(hub, create_token(hub, ada)) as ada_calls:
        create_repo(ada_calls, "open")
        create_repo(ada_calls, "hidden", private=True)
        assert numbers(ada_calls.get("/api/models/ada/hidden/events")) == [1]
    for token, missing in ((create_token(hub, eve), 404), (None, 401)):
        with api(hub, token) as other:
            assert numbers(other.get("/api/models/ada/open/events")) == [1]
            refused = other.get("/api/models/ada/hidden/events")
            assert (refused.status_code, refused.headers["x-error-code"]) == (missing, "RepoNotFound")


@pytest.mark.one_engine
def test_request_that_changes_nothing_records_no_event(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for body in ({"private": False}, {"gated": False}, {"discussionsDisabled": False}):
            assert ada.put("/api/models/ada/tiny/settings", json=body).status_code == 200
        assert numbers(ada.get("/api/models/ada/tiny/events")) == [1]


@pytest.mark.one_engine
def test_old_name_leads_to_the_events(hub: RunningHub) -> None:
    """A follower continues after a move, with the same numbers."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        moved: dict[str, Any] = {"fromRepo": "ada/tiny", "toRepo": "ada/small", "type": "model"}
        assert ada.post("/api/repos/move", json=moved).status_code == 200
        answer = ada.get("/api/models/ada/tiny/events?after=1")
        assert (answer.status_code, answer.headers["location"]) == (307, "/api/models/ada/small/events?after=1")
        (event,) = ada.get(answer.headers["location"]).json()
        assert (event["seq"], event["payload"]["movedTo"]["name"]) == (2, "ada/small")
