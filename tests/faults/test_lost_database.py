"""A database that is lost while serving: 503 with Retry-After, then recovery without help."""

import os
import signal
import sqlite3
import time
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine
from tests.bed.lean_http import LeanClient
from tests.bed.postgres import Cluster
from tests.bed.processes import TEST_BUILD, deliver_process, hub_process, until
from tests.faults.conftest import create_store

pytestmark = pytest.mark.faults


def write(url: str, name: str) -> httpx.Response:
    return httpx.post(f"{url}/api/test/write", json={"name": name, "value": "x"}, timeout=100)


def assert_is_503(response: httpx.Response) -> None:
    assert response.status_code == 503
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["error"] == response.headers["x-error-message"]


def assert_is_a_styled_page(url: str) -> None:
    """Check the error page of a signed-in browser, for which the hub must look up a user."""
    with LeanClient(base_url=url, cookies={"token": "x"}, timeout=100) as browser:
        page = browser.get("/settings/profile")
        assert page.status_code == 503
        style = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert browser.get(style).headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_hub_recovers_from_a_restart_of_postgres(own_cluster: Cluster, tmp_path: Path, how: signal.Signals) -> None:
    store = create_store(own_cluster.url(), tmp_path)
    with hub_process(store.folder, *store.flags, program=TEST_BUILD) as hub:
        assert write(hub.url, "before").status_code == 200
        own_cluster.stop(how)
        assert_is_503(write(hub.url, "during"))
        assert_is_a_styled_page(hub.url)
        assert httpx.get(f"{hub.url}/readyz").status_code == 503
        assert httpx.get(f"{hub.url}/healthz").status_code == 200
        own_cluster.start()
        assert write(hub.url, "after").status_code == 200
        assert httpx.get(f"{hub.url}/readyz").status_code == 200
        assert hub.stop() == 0
    assert store.saved() == {"before", "after"}


def test_hub_recovers_from_a_hanging_postgres(own_cluster: Cluster, tmp_path: Path) -> None:
    """Requests wait only for a limited time for a server that does not respond, and use it again when it does."""
    store = create_store(own_cluster.url(), tmp_path)
    with hub_process(store.folder, *store.flags, program=TEST_BUILD) as hub:
        assert write(hub.url, "before").status_code == 200
        own_cluster.freeze()
        started = time.monotonic()
        assert_is_503(write(hub.url, "during"))
        assert time.monotonic() - started < 60
        own_cluster.thaw()
        until(lambda: write(hub.url, "after").status_code == 200)
        assert hub.stop() == 0
    assert {"before", "after"} <= store.saved()


def test_hub_recovers_from_a_locked_sqlite_file(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    store = create_store(url, tmp_path)
    with hub_process(store.folder, *store.flags, program=TEST_BUILD) as hub:
        stranger = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        stranger.execute("BEGIN EXCLUSIVE")
        assert_is_503(write(hub.url, "during"))
        # Reads still work.
        assert httpx.get(f"{hub.url}/readyz").status_code == 200
        stranger.execute("ROLLBACK")
        stranger.close()
        assert write(hub.url, "after").status_code == 200
        assert hub.stop() == 0
    assert store.saved() == {"after"}


def test_frozen_worker_loses_nothing(sqlite_template: Path, tmp_path: Path) -> None:
    """SIGSTOP of one web process delays its callers and loses nothing."""
    store = create_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)
    with hub_process(store.folder, *store.flags, "--deliver", "off", program=TEST_BUILD) as hub:
        (worker,) = hub.children()
        os.kill(worker, signal.SIGSTOP)
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{hub.url}/healthz", timeout=0.5)
        os.kill(worker, signal.SIGCONT)
        assert write(hub.url, "after").status_code == 200
        assert hub.stop() == 0


@pytest.mark.parametrize("frozen", [True, False])
def test_hub_and_background_process_stop_without_their_database(
    own_cluster: Cluster, tmp_path: Path, frozen: bool
) -> None:
    store = create_store(own_cluster.url(), tmp_path)
    with (
        hub_process(store.folder, *store.flags, program=TEST_BUILD) as hub,
        deliver_process(tmp_path, *store.flags) as alone,
    ):
        assert write(hub.url, "before").status_code == 200
        assert alone.stdout is not None
        assert b"is running" in alone.stdout.readline()
        own_cluster.freeze() if frozen else own_cluster.stop(signal.SIGQUIT)
        try:
            started = time.monotonic()
            alone.send_signal(signal.SIGTERM)
            assert hub.stop() == 0
            assert alone.wait(60) == 0
            # A statement may take fifteen seconds.
            assert time.monotonic() - started < 14
        finally:
            if frozen:
                own_cluster.thaw()
