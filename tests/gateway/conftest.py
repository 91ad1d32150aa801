from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, SqliteEngine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.upstream import Upstream, run_upstream

from hubgate.server.accounts.model import Organization, User
from hubgate.server.hub.context import Limits
from hubgate.server.settings import Settings


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A service for inference and jobs. A test may replace `answer`."""
    with run_upstream() as started:
        yield started


@pytest.fixture
def hub(engine: Engine, tmp_path: Path, limits: Limits, upstream: Upstream) -> Iterator[RunningHub]:
    """A hub with the service behind its gateway."""
    with run_hub(_settings(engine.fresh_url(), tmp_path, upstream), limits=limits) as hub:
        yield hub


@pytest.fixture(params=["granian", "uvicorn"])
def on_each_server(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path, limits: Limits, upstream: Upstream
) -> Iterator[RunningHub]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(_settings(url, tmp_path, upstream, server=request.param), limits=limits) as hub:
        yield hub


def _settings(url: str, folder: Path, upstream: Upstream, **more: str) -> Settings:
    return settings_for(url, folder, inference_upstream=upstream.url, jobs_upstream=upstream.url, **more)


@dataclass(frozen=True)
class Stage:
    """Ada, the admin of acme, and Eve, who is not a member."""

    hub: RunningHub
    ada: User
    eve: User
    acme: Organization
    token: str

    def client(self, token: str | None = None) -> httpx.Client:
        return api(self.hub, token or self.token)


def set_stage(hub: RunningHub) -> Stage:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    return Stage(hub, ada, eve, create_organization(hub, "acme", ada), create_token(hub, ada))


@pytest.fixture
def stage(hub: RunningHub) -> Stage:
    return set_stage(hub)


@pytest.fixture
def on_each(on_each_server: RunningHub) -> Stage:
    """The stage on each HTTP server."""
    return set_stage(on_each_server)
