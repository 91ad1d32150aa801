from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, SqliteEngine, settings_for
from tests.bed.organizations import two_hubs
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.spaces import run_spaces_hub
from tests.bed.webhooks import Receiver, run_receiver

from hubgate.server.accounts.model import User


@pytest.fixture(params=["granian", "uvicorn"])
def on_each_server(request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    """The outermost layer behaves the same on both HTTP servers."""
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, server=request.param)) as hub:
        yield hub


@pytest.fixture
def hubs(engine: Engine, tmp_path: Path) -> Iterator[tuple[RunningHub, RunningHub]]:
    with two_hubs(engine, tmp_path) as pair:
        yield pair


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


@pytest.fixture
def spaces_hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """A hub that runs Spaces."""
    with run_spaces_hub(engine, tmp_path) as started:
        yield started


@pytest.fixture
def plain_hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path / "without")) as started:
        yield started


@pytest.fixture
def user(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def ada(hub: RunningHub, user: User) -> Iterator[httpx.Client]:
    """Ada's client of the API."""
    with api(hub, create_token(hub, user)) as client:
        yield client


@pytest.fixture
def browser(hub: RunningHub, user: User) -> Iterator[httpx.Client]:
    """Ada, signed in on the pages."""
    with browser_of(hub, user) as client:
        yield client
