"""Spaces that run: state, restart, pause, sleep time, secrets, variables and logs over the API."""

import json
from functools import partial
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import SECRET_KEY
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import NAME, SPACE, append_log, create_space, find_space, set_stage

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import User
from hubgate.server.resources import Hub
from hubgate.server.secret import ServerSecret
from hubgate.server.spaces import environment
from hubgate.server.spaces.context import add_older_spaces
from hubgate.server.spaces.logs_store import BUILD, MAX_LINES, RUN
from hubgate.server.spaces.model import Stage
from hubgate.server.spaces.spaces_of_owners import OWNER_DISABLED
from hubgate.server.storage.database import Tx

ADA = "ada"


@pytest.fixture
def hub(spaces_hub: RunningHub) -> RunningHub:
    return spaces_hub


def stage(client: httpx.Client, path: str = SPACE) -> str:
    found: str = client.get(f"{path}/runtime").json()["stage"]
    return found


def post(client: httpx.Client, tail: str, body: dict[str, Any] | None = None) -> httpx.Response:
    return client.post(f"{SPACE}{tail}", json=body or {})


def test_push_restart_and_pause_decide_what_runs(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    expected = {
        "stage": "BUILDING",
        "hardware": {"current": None, "requested": "cpu-basic"},
        "gcTimeout": 172800,
        "storage": None,
        "devMode": False,
    }
    assert ada.get(f"{SPACE}/runtime").json() == expected
    info = ada.get(SPACE).json()
    assert info["runtime"] == expected
    assert (info["host"], info["subdomain"]) == (f"{spaces_hub.url}/hosted/{NAME}", "ada-listener")
    first = find_space(spaces_hub, space)
    set_stage(spaces_hub, space, Stage.BUILD_ERROR, "No matching distribution found for nothing.")
    assert ada.get(f"{SPACE}/runtime").json()["errorMessage"] == "No matching distribution found for nothing."

    create_commit(ada, NAME, {"app.py": b"print(1)"}, repo_type="space")
    assert (stage(ada), find_space(spaces_hub, space).version) == ("BUILDING", first.version + 1)
    assert post(ada, "/pause").json()["stage"] == "PAUSED"
    # A push does not start a paused Space.
    create_commit(ada, NAME, {"app.py": b"print(2)"}, repo_type="space")
    assert stage(ada) == "PAUSED"
    assert post(ada, "/restart?factory=true").json()["stage"] == "BUILDING"
    found = find_space(spaces_hub, space)
    assert (found.wanted, found.factory_version) == ("run", found.version)
    # A card that names another SDK stops it; the row stays.
    create_commit(ada, NAME, {"README.md": b"---\nsdk: docker\n---\n"}, repo_type="space")
    assert (stage(ada), find_space(spaces_hub, space).sdk) == ("STOPPED", "")
    refused = post(ada, "/restart")
    assert (refused.status_code, "sdk: python" in refused.json()["error"]) == (400, True)


@pytest.mark.one_engine
def test_paused_space_stays_paused_when_its_sdk_changes(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    create_space(ada)
    post(ada, "/pause")
    for sdk, expected in (("docker", "STOPPED"), ("python", "PAUSED")):
        create_commit(ada, NAME, {"README.md": f"---\nsdk: {sdk}\n---\n".encode()}, repo_type="space")
        assert stage(ada) == expected


@pytest.mark.one_engine
def test_push_to_a_branch_starts_nothing(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    before = find_space(spaces_hub, space)
    assert ada.post(f"{SPACE}/branch/side", json={}).status_code == 200
    create_commit(ada, NAME, {"app.py": b"print(1)"}, repo_type="space", rev="side")
    assert find_space(spaces_hub, space) == before


@pytest.mark.one_engine
def test_renamed_space_gets_a_new_version(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    before = find_space(spaces_hub, space)
    body = {"fromRepo": NAME, "toRepo": "ada/renamed", "type": "space"}
    assert ada.post("/api/repos/move", json=body).status_code == 200
    # The app knows its name.
    assert find_space(spaces_hub, space).version == before.version + 1


@pytest.mark.one_engine
def test_spaces_of_a_disabled_account_are_paused(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    eve = create_user(spaces_hub, "eve")
    with api(spaces_hub, create_token(spaces_hub, eve)) as client:
        theirs, mine = create_space(client, "eve/listener"), create_space(ada)

    async def disable(opened: Hub) -> None:
        await operator_actions.disable(opened.accounts, eve)

    spaces_hub.call(disable)
    assert (find_space(spaces_hub, theirs).wanted, find_space(spaces_hub, mine).wanted) == ("pause", "run")
    found = ada.get("/api/spaces/eve/listener/runtime").json()
    assert (found["stage"], found["errorMessage"]) == ("PAUSED", OWNER_DISABLED)


def test_spaces_restarted_and_created_while_their_owner_is_disabled_do_not_run(spaces_hub: RunningHub) -> None:
    for number in range(6):
        user = create_user(spaces_hub, f"user{number}")

        def disable(user: User = user) -> httpx.Response:
            spaces_hub.call(lambda opened: operator_actions.disable(opened.accounts, user))
            return httpx.Response(204)

        with api(spaces_hub, create_token(spaces_hub, user)) as client:
            space = create_space(client, f"user{number}/listener")
            restart = partial(client.post, f"/api/spaces/user{number}/listener/restart")
            creations = [
                partial(client.post, "/api/repos/create", json={"name": name, "type": "space", "sdk": "gradio"})
                for name in ("one", "two", "three")
            ]
            _, *answers = run_concurrently([disable, *[restart] * 4, *creations])
        assert {answer.status_code for answer in answers} <= {200, 401}, [answer.text for answer in answers]
        spaces = [space, *(answer.json()["id"] for answer in answers[4:] if answer.status_code == 200)]
        assert {find_space(spaces_hub, each).wanted for each in spaces} == {"pause"}


@pytest.mark.one_engine
def test_sleep_time_is_limited_to_48_hours(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    create_space(ada, sleepTimeSeconds=7200, hardware="cpu-basic")
    assert ada.get(f"{SPACE}/runtime").json()["gcTimeout"] == 7200
    assert post(ada, "/sleeptime", {"seconds": 300}).json()["gcTimeout"] == 300
    for seconds in (-1, 59, 172801):
        refused = post(ada, "/sleeptime", {"seconds": seconds})
        assert (refused.status_code, "operator" in refused.json()["error"]) == (422, True)
    hardware = post(ada, "/hardware", {"flavor": "cpu-basic", "sleepTimeSeconds": 600})
    assert hardware.json()["gcTimeout"] == 600
    assert post(ada, "/hardware", {"flavor": "t4-small"}).status_code == 400
    assert [each["name"] for each in ada.get("/api/spaces/hardware").json()] == ["cpu-basic"]
    refused = ada.post("/api/repos/create", json={"name": "x", "type": "space", "sdk": "gradio", "hardware": "a100"})
    assert refused.status_code == 400


@pytest.mark.one_engine
def test_secrets_are_sealed_and_never_shown(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    secrets = [{"key": "WEBHOOK_SECRET", "value": "first-secret"}]
    space = create_space(ada, secrets=secrets, variables=[{"key": "MODE", "value": "fast", "description": "How"}])
    version = find_space(spaces_hub, space).version
    listed = post(ada, "/secrets", {"key": "API_KEY", "value": "second-secret", "description": "For the API"}).json()
    assert (sorted(listed), listed["API_KEY"]["description"]) == (["API_KEY", "WEBHOOK_SECRET"], "For the API")
    assert ada.get(f"{SPACE}/secrets").json() == listed
    variables = ada.get(f"{SPACE}/variables").json()
    assert {key: each["value"] for key, each in variables.items()} == {"MODE": "fast"}
    assert find_space(spaces_hub, space).version == version + 1

    async def environment_of(opened: Hub) -> dict[str, str]:
        return await environment.opened(opened.spaces, space)

    expected = {"MODE": "fast", "WEBHOOK_SECRET": "first-secret", "API_KEY": "second-secret"}
    assert spaces_hub.call(environment_of) == expected

    async def stored(opened: Hub) -> list[bytes]:
        async def unit(tx: Tx) -> list[bytes]:
            return [bytes(row["value"]) for row in await tx.all("SELECT value FROM space_secrets")]

        return await opened.db.read(unit)

    assert not any(b"secret" in value for value in spaces_hub.call(stored))
    # One name has one value.
    post(ada, "/variables", {"key": "API_KEY", "value": "plain"})
    assert list(ada.get(f"{SPACE}/secrets").json()) == ["WEBHOOK_SECRET"]
    deleted = ada.request("DELETE", f"{SPACE}/secrets", json={"key": "WEBHOOK_SECRET"})
    assert (deleted.status_code, deleted.json()) == (200, {})
    assert ada.request("DELETE", f"{SPACE}/secrets", json={"key": "WEBHOOK_SECRET"}).status_code == 404
    for key in ("", "1A", "A-B", "PORT", "ld_preload", "PYTHONPATH", "A" * 101):
        assert post(ada, "/secrets", {"key": key, "value": "x"}).status_code == 422, key
    # In bytes: a hundred of them must fit into the environment of a program.
    for value in ("x" * 20_000, "é" * 10_000):
        assert post(ada, "/variables", {"key": "LONG", "value": value}).status_code == 422


def test_secrets_are_sealed_again_with_a_new_key(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada, secrets=[{"key": "A", "value": "1"}, {"key": "B", "value": "2"}])

    async def reseal(opened: Hub) -> tuple[int, int, dict[str, str]]:
        new = "a new key of at least thirty-two characters"
        both = ServerSecret(f"{new},{SECRET_KEY}")
        counts = await environment.reseal(opened.db, both), await environment.reseal(opened.db, both)
        return *counts, await environment.opened(replace(opened.spaces, secret=ServerSecret(new)), space)

    assert spaces_hub.call(reseal) == (2, 0, {"A": "1", "B": "2"})


def test_logs_are_streamed_in_order(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space = create_space(ada)
    append_log(spaces_hub, space, RUN, ["one", "two\0"])
    append_log(spaces_hub, space, BUILD, [f"line {n}" for n in range(MAX_LINES + 5)])
    with ada.stream("GET", f"{SPACE}/logs/run") as response:
        assert response.headers["content-type"] == "text/event-stream"
        events = (json.loads(line[6:])["data"] for line in response.iter_lines() if line.startswith("data: {"))
        assert [next(events), next(events)] == ["one\n", "two\n"]
        append_log(spaces_hub, space, RUN, ["three"])
        assert next(events) == "three\n"
    with ada.stream("GET", f"{SPACE}/logs/build") as response:
        lines = (json.loads(line[6:])["data"] for line in response.iter_lines() if line.startswith("data: {"))
        # The newest lines are stored.
        read = [next(lines) for _ in range(MAX_LINES)]
        assert (read[0], read[-1]) == ("line 5\n", f"line {MAX_LINES + 4}\n")


@pytest.mark.one_engine
def test_log_stream_ends_when_its_reader_loses_the_permission(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    eve = create_user(spaces_hub, "eve")
    create_organization(spaces_hub, "acme", eve, ada="write")
    with api(spaces_hub, create_token(spaces_hub, eve)) as admin:
        space = create_space(admin, "acme/listener")
        append_log(spaces_hub, space, RUN, ["one"])
        with ada.stream("GET", "/api/spaces/acme/listener/logs/run") as response:
            events = (line for line in response.iter_lines() if line.startswith("data: {"))
            assert "one" in next(events)
            demoted = admin.put("/api/organizations/acme/members/ada/role", json={"role": "read"})
            assert demoted.status_code == 200, demoted.text
            append_log(spaces_hub, space, RUN, ["two"])
            assert list(events) == []


@pytest.mark.one_engine
def test_only_writers_manage_a_space(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    create_space(ada)
    with api(spaces_hub, create_token(spaces_hub, create_user(spaces_hub, "eve"))) as eve:
        assert stage(eve) == "BUILDING"
        for tail in ("/secrets", "/variables", "/logs/run", "/logs/build"):
            assert eve.get(f"{SPACE}{tail}").status_code == 403, tail
        assert (post(eve, "/restart").status_code, post(eve, "/pause").status_code) == (403, 403)


@pytest.mark.one_engine
def test_changes_of_an_organizations_space_are_audited(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    create_organization(spaces_hub, "acme", create_user(spaces_hub, "eve"), ada="admin")
    create_space(ada, "acme/listener")
    path = "/api/spaces/acme/listener"
    secret, sleep_time = {"key": "TOKEN", "value": "very-secret"}, {"seconds": 60}
    for tail, body in (("secrets", secret), ("pause", {}), ("restart", {}), ("sleeptime", sleep_time)):
        spaces_hub.clock.advance(1)
        assert ada.post(f"{path}/{tail}", json=body).status_code == 200
    log = ada.get("/api/organizations/acme/audit-log/export").json()
    types = ["space.update_settings", "space.restart", "space.pause", "space.update_secrets"]
    assert [entry["type"] for entry in log[:4]] == types
    assert log[3]["message"] == "set the secret TOKEN of the space acme/listener"
    assert "very-secret" not in json.dumps(log)


@pytest.mark.one_engine
def test_spaces_are_stored_where_none_run(plain_hub: RunningHub) -> None:
    with api(plain_hub, create_token(plain_hub, create_user(plain_hub, ADA))) as client:
        space = create_space(client, hardware="t4-small", secrets=[{"key": "A", "value": "b"}])
        assert stage(client) == "STOPPED"
        assert client.get(SPACE).json()["runtime"]["stage"] == "STOPPED"
        append_log(plain_hub, space, RUN, ["one"])
        # The stream ends: nothing follows.
        assert client.get(f"{SPACE}/logs/run").text.count("data: {") == 1
        # The state is stored for the day when the operator turns it on.
        assert find_space(plain_hub, space).stage == "BUILDING"


def test_spaces_pushed_before_the_hub_ran_spaces_are_added(spaces_hub: RunningHub, ada: httpx.Client) -> None:
    space, docker = create_space(ada), create_repo(ada, "ada/image", "space", sdk="docker")["id"]

    async def forget_and_add(opened: Hub) -> set[str]:
        async def forget(tx: Tx) -> None:
            await tx.exec("DELETE FROM spaces")

        async def ids(tx: Tx) -> set[str]:
            return {row["repo_id"] for row in await tx.all("SELECT repo_id FROM spaces")}

        await opened.db.write(forget)
        await add_older_spaces(opened.spaces)
        return await opened.db.read(ids)

    assert spaces_hub.call(forget_and_add) == {space}
    assert docker != space
