"""`/api/settings/tokens`: a token can list and revoke tokens, but not create any."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from tests.bed.engines import settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import operator_actions
from hubgate.server.resources import Hub
from hubgate.server.storage.postgres import CONNECTIONS

pytestmark = pytest.mark.one_engine

PATH = "/api/settings/tokens"
WHOAMI = "/api/whoami-v2"


@pytest.fixture
def neighbour(hub: RunningHub) -> Iterator[RunningHub]:
    """Another web process on the same database."""
    with run_hub(settings_for(hub.settings.database_url, hub.settings.data_dir)) as other:
        yield other


def listed(hub: RunningHub, token: str) -> list[dict[str, Any]]:
    with api(hub, token) as client:
        response = client.get(PATH)
        assert response.status_code == 200, response.text
        found: list[dict[str, Any]] = response.json()
        return found


def named(hub: RunningHub, token: str, name: str) -> str:
    (found,) = [item["id"] for item in listed(hub, token) if item["name"] == name]
    return str(found)


@contextlib.asynccontextmanager
async def unwritable(hub: RunningHub) -> AsyncIterator[None]:
    """Another transaction blocks writing tokens; they can be read."""
    file = hub.settings.engine.file
    if file:
        with contextlib.closing(sqlite3.connect(file)) as stranger:
            stranger.execute("BEGIN IMMEDIATE")
            yield
        return
    stranger = await asyncpg.connect(hub.settings.database_url)
    try:
        async with stranger.transaction():
            await stranger.execute("LOCK TABLE access_tokens IN EXCLUSIVE MODE")
            yield
    finally:
        await stranger.close()


def test_tokens_are_listed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_token(hub, create_user(hub, "bob"), name="not mine")
    first = create_token(hub, ada, "read", "first")
    hub.clock.advance(3)
    second = create_token(hub, ada, "write", "second")
    until(lambda: listed(hub, first)[1]["lastUsedAt"] is not None)
    newest, oldest = listed(hub, first)
    assert newest == {
        "id": newest["id"],
        "name": "second",
        "role": "write",
        "lastFour": second[-4:],
        "createdAt": "2026-09-21T14:13:23.000Z",
        "lastUsedAt": None,
        "lastUsedIp": None,
        "expiresAt": None,
    }
    assert (oldest["name"], oldest["role"], oldest["lastUsedAt"]) == ("first", "read", "2026-09-21T14:13:23.000Z")
    assert oldest["lastUsedIp"] == "127.0.0.1"
    with api(hub, second) as client:
        assert client.get(f"{PATH}/{newest['id']}").json()["name"] == "second"
        for secret in (first, second):
            assert secret not in client.get(PATH).text


def test_list_has_pages(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    tokens = [create_token(hub, ada, "read", f"number {number}") for number in range(5)]
    with api(hub, tokens[0]) as client:
        found, address = [], f"{PATH}?limit=2"
        while address:
            page = client.get(address)
            found += [item["name"] for item in page.json()]
            address = page.links.get("next", {}).get("url", "")
    assert sorted(found) == [f"number {number}" for number in range(5)]


def test_read_token_reads_and_changes_nothing(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token, other = create_token(hub, ada, "read", "reader"), create_token(hub, ada, "write", "other")
    address = f"{PATH}/{named(hub, token, 'other')}"
    with api(hub, token) as client:
        for refused in (client.delete(address), client.patch(address, json={"name": "x"})):
            assert refused.status_code == 403
            assert "This token can only read" in refused.json()["error"]
        assert client.get(address).json()["name"] == "other"
    assert listed(hub, other)


def test_write_token_renames_and_revokes_even_itself(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token, other = create_token(hub, ada, "write", "writer"), create_token(hub, ada, "read", "other")
    address = f"{PATH}/{named(hub, token, 'other')}"
    with api(hub, token) as client:
        renamed = client.patch(address, json={"name": " new   name "})
        assert (renamed.status_code, renamed.json()["name"]) == (200, "new name")
        assert client.delete(address).status_code == 204
        assert client.delete(address).status_code == 404
        with api(hub, other) as gone:
            assert gone.get(WHOAMI).status_code == 401
        assert client.delete(f"{PATH}/{named(hub, token, 'writer')}").status_code == 204
        assert client.get(PATH).status_code == 401


@pytest.mark.parametrize("role", ["read", "write"])
def test_no_token_creates_or_refreshes_one(hub: RunningHub, role: str) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada, role)
    address = f"{PATH}/{listed(hub, token)[0]['id']}/refresh"
    with api(hub, token) as client:
        for refused in (client.post(PATH, json={"name": "x", "role": "read"}), client.post(address), client.post(PATH)):
            assert refused.status_code == 403
            assert refused.json()["error"] == "No token can be used to change credentials. Sign in on the hub's pages."
        assert len(client.get(PATH).json()) == 1


def test_o61_session_cookie_is_ignored(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_token(hub, ada)
    with browser_of(hub, ada) as client:
        answers = [client.get(PATH), client.post(PATH), client.delete(f"{PATH}/{'0' * 24}"), httpx.get(hub.url + PATH)]
    assert {answer.status_code for answer in answers} == {401}


def test_another_users_token_is_404(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    mine, theirs = create_token(hub, ada), create_token(hub, bob)
    (foreign,) = [item["id"] for item in listed(hub, theirs)]
    with api(hub, mine) as client:
        for token_id in (foreign, "0" * 24, "nonsense", "%F0%9F%94%91"):
            address = f"{PATH}/{token_id}"
            answers = (client.get(address), client.patch(address, json={"name": "x"}), client.delete(address))
            assert {answer.status_code for answer in answers} == {404}
            assert {answer.json()["error"] for answer in answers} == {"Token not found."}
    assert [item["name"] for item in listed(hub, theirs)] == ["test"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"name": ""}, 422),
        ({"name": " "}, 422),
        ({"name": "x" * 97}, 422),
        ({"name": "a\u202eb"}, 422),
        ({"name": "a\u0000b"}, 422),
        ({"name": 7}, 422),
        ({"name": "x", "role": "write"}, 422),
        ({"name": "x", "unknown": 1}, 422),
        ([], 422),
    ],
)
def test_invalid_change_is_rejected(hub: RunningHub, body: object, status: int) -> None:
    token = create_token(hub, create_user(hub, "ada"), "write", "kept")
    with api(hub, token) as client:
        address = f"{PATH}/{named(hub, token, 'kept')}"
        assert client.patch(address, json=body).status_code == status
        assert client.patch(address, content="{").status_code == 400
        assert client.get(address).json()["name"] == "kept"


def test_revocation_by_another_process_applies_at_the_next_request(hub: RunningHub, neighbour: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token, other = create_token(hub, ada, "write", "writer"), create_token(hub, ada, "read", "other")
    with api(hub, other) as here, api(neighbour, token) as there, api(neighbour, other) as also_there:
        assert here.get(WHOAMI).status_code == also_there.get(WHOAMI).status_code == 200
        assert there.delete(f"{PATH}/{named(hub, token, 'other')}").status_code == 204
        assert here.get(WHOAMI).status_code == also_there.get(WHOAMI).status_code == 401


def test_disabled_users_tokens_are_rejected_at_the_next_request(hub: RunningHub, neighbour: RunningHub) -> None:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada)

    def switch(enabled: bool) -> None:
        async def work(opened: Hub) -> None:
            await (operator_actions.enable if enabled else operator_actions.disable)(opened.accounts, ada)

        neighbour.call(work)

    with api(hub, token) as client:
        assert client.get(WHOAMI).status_code == 200
        switch(enabled=False)
        assert client.get(WHOAMI).status_code == 401
        assert client.get(PATH).status_code == 401
        switch(enabled=True)
        assert client.get(WHOAMI).status_code == 200


def test_answers_to_a_token_match_the_document(hub: RunningHub) -> None:
    """The fuzzer of test_openapi.py is anonymous, so it sees only refusals."""
    ada = create_user(hub, "ada")
    headers = {"authorization": f"Bearer {create_token(hub, ada)}"}
    browser_of(hub, ada).close()
    config = schemathesis.Config.from_dict({"generation": {"allow-x00": False}})
    document = schemathesis.openapi.from_url(f"{hub.url}/api/openapi.json", config=config)
    operations = [result.ok() for result in document.include(path_regex="^/api/settings/").get_all_operations()]
    assert len(operations) >= 8
    seen = set()
    with requests.Session() as session:
        for operation in operations:

            @given(case=operation.as_strategy())
            @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
            def examine(case: schemathesis.Case) -> None:
                response = case.call(session=session, headers=headers)
                seen.add(response.status_code)
                # JSON Schema cannot say that a cursor must be the hub's, or that a name must not be blank.
                case.validate_response(response, headers=headers, excluded_checks=[positive_data_acceptance])

            examine()
    assert {200, 403, 404} <= seen
    assert max(seen) < 500


async def test_answer_does_not_wait_for_recording_the_last_use(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        async with unwritable(hub):
            answers = [client.get(WHOAMI).status_code for _ in range(CONNECTIONS + 2)]
    assert set(answers) == {200}
