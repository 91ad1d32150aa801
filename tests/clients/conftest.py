"""Clients compare the times in an ID token with their own clock, so the hub's clock shows the current time for them.

Tests with repos are slow to set up: one hub serves all tests of a file.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.bed.clock import FrozenClock
from tests.bed.engines import Engine, SqliteEngine, settings_for
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.sites import Site, site

from hubgate.server.clock import system_clock


@pytest.fixture
def hub_today(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """On both engines."""
    with _at_present(engine, tmp_path) as hub:
        yield hub


@pytest.fixture
def sqlite_today(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with _at_present(SqliteEngine(sqlite_template, tmp_path), tmp_path) as hub:
        yield hub


@pytest.fixture(scope="module")
def shared_today(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """One hub for all tests of a file."""
    folder = tmp_path_factory.mktemp("shared")
    with _at_present(SqliteEngine(sqlite_template, folder), folder) as hub:
        yield hub


@dataclass(frozen=True)
class Shared:
    """Ada, who created acme, and Bob, with their tokens."""

    hub: RunningHub
    ada: str
    bob: str


@pytest.fixture(scope="module")
def shared(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("shared")
    with run_hub(settings_for(SqliteEngine(sqlite_template, folder).fresh_url(), folder)) as hub:
        ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
        create_organization(hub, "acme", ada)
        yield Shared(hub, create_token(hub, ada), create_token(hub, bob))
        # Locks do not exist: git-lfs asks for them all the same, and is answered 501.
        failed = [line for line in hub.log.splitlines() if json.loads(line).get("status", 0) in (500, 502, 503, 504)]
        assert failed == []


@contextmanager
def _at_present(engine: Engine, folder: Path) -> Iterator[RunningHub]:
    hub = RunningHub(settings_for(engine.fresh_url(), folder), FrozenClock(system_clock()))
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


@pytest.fixture
def its_site(tmp_path: Path) -> Iterator[Site]:
    """The address of the third party's app."""
    with site(tmp_path / "site") as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context() as context:
        page = context.new_page()
        page.on("console", lambda message: print(message.text))
        page.on("pageerror", lambda error: print(error))
        yield page
