"""Stored sign-ins: readable only by their owner, written atomically, refreshed once."""

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bed.devices import approve
from tests.bed.hostile import json_response, run_hostile_server
from tests.bed.people import create_user
from tests.bed.processes import environment
from tests.bed.running_hub import RunningHub
from tests.bed.sleepless_drivers import without_sleeping
from tests.client.test_hostile_answers import ME

from hubgate import Hub
from hubgate.client import errors
from hubgate.client.models import DeviceCode
from hubgate.client.store import SignIn, Store, StoredSignIns, default_folder

HERE = "http://127.0.0.1:8000"
REFRESHED = {"access_token": "hf_new", "token_type": "bearer", "expires_in": 1000, "refresh_token": "hf_r2"}


def keep(folder: Path, endpoint: str, **fields: object) -> Store:
    store = Store(folder)
    given = {"access_token": "hf_old", "refresh_token": "hf_r1", "client_id": "hubgate-cli", **fields}
    store.save(StoredSignIns(endpoint, {endpoint: SignIn(**given)}))  # type: ignore[arg-type]
    return store


def test_store_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    store = keep(tmp_path / "new", HERE)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    store.path.chmod(0o644)
    assert store.load().hubs[HERE].access_token == "hf_old"
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert "hf_old" not in repr(store.load())
    assert [path.name for path in store.path.parent.iterdir()] == ["credentials.json"]


def test_default_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/hubgate")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert default_folder() == Path.home() / ".config" / "hubgate"


WRONG_TYPES = [
    json.dumps({"hubs": {"http://x": {"access_token": "hf_x", **wrong}}})
    for wrong in ({"access_token": None}, {"expires_at": "soon"}, {"issued_at": 10**400}, {"refresh_token": 5})
]


@pytest.mark.parametrize("text", ["{", "[]", '{"hubs": 3}', '{"hubs": {"x": {}}}', "\ufeff", *WRONG_TYPES])
def test_damaged_file_is_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text(text)
    with pytest.raises(errors.StoreUnusable, match="is damaged"):
        Store(tmp_path).load()


def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StoreUnusable, match="Cannot write"):
        keep(tmp_path / "file" / "below", HERE)


def test_sign_in_is_sent_only_to_its_own_hub(tmp_path: Path) -> None:
    with run_hostile_server(json_response(200, ME)) as server, run_hostile_server(json_response(200, ME)) as other:
        keep(tmp_path, server.url)
        with Hub(config_folder=tmp_path) as hub:
            assert hub.endpoint == server.url
            hub.whoami()
        with Hub(other.url, config_folder=tmp_path) as hub:
            hub.whoami()
        assert server.seen[0].headers["authorization"] == "Bearer hf_old"
        assert "authorization" not in other.seen[0].headers


def test_token_is_refreshed_before_it_expires(tmp_path: Path) -> None:
    with run_hostile_server(json_response(200, REFRESHED), json_response(200, ME)) as server:
        store = keep(tmp_path, server.url, issued_at=0.0, expires_at=1.0)
        with Hub(config_folder=tmp_path) as hub:
            hub.whoami()
            hub.whoami()
        paths = [seen.target for seen in server.seen]
        assert paths == ["/oauth/token", "/api/whoami-v2", "/api/whoami-v2"]
        assert b"refresh_token=hf_r1" in server.seen[0].body
        assert "authorization" not in server.seen[0].headers
        assert server.seen[1].headers["authorization"] == "Bearer hf_new"
    assert store.load().hubs[server.url].refresh_token == "hf_r2"
    assert store.load().endpoint == server.url


def test_token_is_refreshed_when_the_hub_rejects_it(tmp_path: Path) -> None:
    with run_hostile_server(
        json_response(401, {"error": "No."}), json_response(200, REFRESHED), json_response(200, ME)
    ) as server:
        keep(tmp_path, server.url)
        with Hub(config_folder=tmp_path) as hub:
            assert hub.whoami().name == "ada"
        assert [seen.target for seen in server.seen] == ["/api/whoami-v2", "/oauth/token", "/api/whoami-v2"]


def test_failed_refresh_is_ignored_while_the_token_is_valid(tmp_path: Path) -> None:
    import time

    now = time.time()
    with run_hostile_server(json_response(500, {}), json_response(200, ME)) as server:
        keep(tmp_path, server.url, issued_at=now - 10_000, expires_at=now + 100)
        with Hub(config_folder=tmp_path, retries=0) as hub:
            assert hub.whoami().name == "ada"
        assert server.seen[1].headers["authorization"] == "Bearer hf_old"


@pytest.mark.parametrize("expires_at", [0.0, 1.0])
def test_expired_sign_in_says_to_run_login(expires_at: float, tmp_path: Path) -> None:
    refused = json_response(400, {"error": "invalid_grant", "error_description": "Gone."})
    first = [json_response(401, {"error": "No."})] if not expires_at else []
    with run_hostile_server(*first, refused) as server:
        keep(tmp_path, server.url, expires_at=expires_at)
        with Hub(config_folder=tmp_path) as hub, pytest.raises(errors.NotSignedIn, match="Run: hubgate login"):
            hub.whoami()


def test_token_refreshed_by_another_process_is_used(tmp_path: Path) -> None:
    with run_hostile_server(json_response(401, {"error": "No."}), json_response(200, ME)) as server:
        store = keep(tmp_path, server.url)
        with Hub(config_folder=tmp_path) as hub:
            kept = store.load()
            hub._session.credentials._sign_in = kept.hubs[server.url]  # type: ignore[attr-defined]
            newer = replace(kept.hubs[server.url], access_token="hf_newer")
            store.save(StoredSignIns(server.url, {server.url: newer}))
            hub.whoami()
        assert [seen.target for seen in server.seen] == ["/api/whoami-v2", "/api/whoami-v2"]
        assert server.seen[1].headers["authorization"] == "Bearer hf_newer"


SCRIPT = """
import sys
from hubgate import Hub
sys.stdin.readline()
with Hub() as hub:
    print(hub.whoami().name)
"""


def test_concurrent_processes_refresh_once(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada = create_user(sqlite_hub, "ada")
    folder = tmp_path / "config" / "hubgate"

    def allow(code: DeviceCode) -> None:
        approve(sqlite_hub, ada, code.user_code, "openid profile")

    with Hub(sqlite_hub.url, config_folder=folder) as hub:
        without_sleeping(hub, lambda _: None).login(allow)
    store = Store(folder)
    first = store.load().hubs[sqlite_hub.url]
    # As if a month had gone by.
    store.save(StoredSignIns(sqlite_hub.url, {sqlite_hub.url: replace(first, issued_at=0.0, expires_at=1.0)}))
    before = sqlite_hub.log.count('"/oauth/token"')
    variables = environment(XDG_CONFIG_HOME=str(tmp_path / "config"))
    command = [sys.executable, "-c", SCRIPT]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = [subprocess.Popen(command, env=variables, text=True, **pipes) for _ in range(4)]  # type: ignore[call-overload]
    done = [process.communicate("go\n", timeout=60) for process in running]
    assert done == [("ada\n", "")] * 4
    assert sqlite_hub.log.count('"/oauth/token"') - before <= 1
    fresh = store.load().hubs[sqlite_hub.url]
    assert fresh.refresh_token != first.refresh_token
    assert fresh.name == "ada"


def test_unknown_members_of_the_file_are_ignored(tmp_path: Path) -> None:
    """What a newer version adds to the file is no reason to refuse it."""
    store = keep(tmp_path, HERE)
    content = json.loads(store.path.read_text())
    content["hubs"][HERE]["colour"] = "blue"
    store.path.write_text(json.dumps(content))
    os.utime(store.path)
    assert store.load().hubs[HERE].client_id == "hubgate-cli"
