"""The fixtures. PostgreSQL servers are started once for a run and shared by all its worker processes."""

import gc
import inspect
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bed import engines
from tests.bed.blocking import blocking
from tests.bed.browser import launched
from tests.bed.clock import FrozenClock
from tests.bed.postgres import Cluster, quickest_place
from tests.bed.receiver import Receiver, receiving
from tests.bed.running import RunningHub, running

from hubgate.server.hub.limits import Limits

_CLUSTERS = pytest.StashKey[dict[str, Cluster]]()
_FOLDER = pytest.StashKey["tempfile.TemporaryDirectory[str]"]()
SMALL_FAULT_COUNT = 3
# By cluster: databases of tests that have ended.
_OVER: dict[str, list[str]] = {}

# Warnings are errors here, and the receiver says at its import that it is experimental.
os.environ["HUBGATE_NO_EXPERIMENTAL_WARNING"] = "1"

# Nobody here speaks to the world. httpx reads all certificates of the system for each client it makes, which takes
# longer than most requests; where there is no folder there are none.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres-bin", type=Path, help="run on this server's programs instead of the wheel's")
    parser.addoption("--fault-count", type=int, default=SMALL_FAULT_COUNT, help="how often fault tests kill")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_CLUSTERS] = {}
        config.stash[_FOLDER] = tempfile.TemporaryDirectory(prefix="hubgate-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    for cluster in config.stash.get(_CLUSTERS, {}).values():
        cluster.remove()
    if folder := config.stash.get(_FOLDER, None):
        folder.cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: the controller starts what its workers share."""
    node.workerinput["clusters"] = {version: _cluster_url(node.config, version) for version in ("16", "18")}


def _cluster_url(config: pytest.Config, version: str) -> str:
    if hasattr(config, "workerinput"):
        return str(config.workerinput["clusters"][version])
    clusters = config.stash[_CLUSTERS]
    if version not in clusters:
        clusters[version] = Cluster(version, config.getoption("--postgres-bin"), quickest_place())
        engines.make_postgres_template(clusters[version].url(), Path(config.stash[_FOLDER].name))
    return clusters[version].url()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults first: they wait more than they work, and others run meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("faults") is None)


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not look through all of them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in a loop and thread of its own: Playwright keeps a loop running in the main one."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    blocking(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return engines.make_sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(params=["sqlite", "postgres 16"], ids=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    """Each test that asks for it runs on both engines."""
    yield from _engine(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres 16", "postgres 18"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    """For the storage suite: also on the newest PostgreSQL."""
    yield from _engine(request, tmp_path)


def _engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    if request.param == "sqlite":
        yield engines.SqliteEngine(request.getfixturevalue("sqlite_template"), tmp_path)
        return
    url = _cluster_url(request.config, request.param.removeprefix("postgres "))
    over = _OVER.setdefault(url, [])
    engine = engines.PostgresEngine(url, over)
    yield engine
    over.extend(engine.made)


@pytest.fixture
def limits(request: pytest.FixtureRequest) -> Limits:
    """A hub's own, but for those that the test is marked with."""
    marker = request.node.get_closest_marker("limits")
    return Limits(**marker.kwargs) if marker else Limits()


@pytest.fixture
def hub(engine: engines.Engine, tmp_path: Path, limits: Limits) -> Iterator[RunningHub]:
    with running(engines.settings_for(engine.fresh_url(), tmp_path), limits=limits) as hub:
        yield hub


@pytest.fixture
def on_sqlite(sqlite_template: Path, tmp_path: Path, limits: Limits) -> Iterator[RunningHub]:
    """For what has nothing to do with the engine."""
    url = engines.SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with running(engines.settings_for(url, tmp_path), limits=limits) as hub:
        yield hub


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A PostgreSQL server to stop, kill and start again."""
    cluster = Cluster("16", request.config.getoption("--postgres-bin"))
    try:
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def fault_count(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--fault-count")
    return count
