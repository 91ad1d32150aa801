"""The pytest fixtures. PostgreSQL servers are started once per run and shared by all worker processes."""

import contextlib
import gc
import inspect
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from tests.bed import engines, statements
from tests.bed.blocking import run_blocking
from tests.bed.browser import run_browser
from tests.bed.clock import FrozenClock
from tests.bed.http_receiver import Receiver, run_http_receiver
from tests.bed.postgres import Cluster, fastest_folder
from tests.bed.processes import ROOT
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.s3_server import S3Server, run_s3_server
from tests.bed.times import CpuMeter, Recorder

from hubgate.server.hub.context import Limits

_CLUSTERS = pytest.StashKey[dict[str, Cluster]]()
_FOLDER = pytest.StashKey["tempfile.TemporaryDirectory[str]"]()
SMALL_FAULT_COUNT = 3
_SLOW_FOLDERS = ("access", "browser", "cli", "clients", "faults", "spaces")
POSTGRES = "postgres 16"
# Databases of finished tests, by cluster.
_UNUSED: dict[str, list[str]] = {}

# Warnings are errors here, and importing the receiver warns that it is experimental.
os.environ["HUBGATE_NO_EXPERIMENTAL_WARNING"] = "1"

# Tests do not use the internet. For each client, httpx would load all system certificates, which takes longer than
# most requests.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = os.devnull

# The default timeout of httpx is five seconds, which a request to a busy machine may take.
for _step in ("connect", "read", "write", "pool"):
    setattr(inspect.signature(httpx.get).parameters["timeout"].default, _step, 60.0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--postgres-bin", type=Path, help="run on this server's programs instead of the wheel's")
    parser.addoption(
        "--all-engines",
        action="store_true",
        help="run `one_engine` tests on PostgreSQL too, and more examples",
    )
    parser.addoption("--fault-count", type=int, default=SMALL_FAULT_COUNT, help="how often fault tests kill")
    parser.addoption("--times", type=Path, help="write the seconds of each test to this file: see tests/bed/times.py")


def pytest_configure(config: pytest.Config) -> None:
    statements.start_recording()
    config.pluginmanager.register(CpuMeter())
    examples = 300 if config.getoption("--all-engines") else 100
    # Without a deadline: an example that shares the cores with other tests may take a second.
    hypothesis.settings.register_profile("tests", hypothesis.settings.default, max_examples=examples, deadline=None)
    hypothesis.settings.load_profile("tests")
    if not hasattr(config, "workerinput"):
        # Databases and repos are synced to disk at every commit, which takes a third of the time of many tests.
        # Processes that are killed lose nothing in memory either.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(fastest_folder()))
        config.stash[_CLUSTERS] = {}
        config.stash[_FOLDER] = tempfile.TemporaryDirectory(prefix="hubgate-tests-")
        if file := config.getoption("--times"):
            config.pluginmanager.register(Recorder(file))


def pytest_unconfigure(config: pytest.Config) -> None:
    for cluster in config.stash.get(_CLUSTERS, {}).values():
        cluster.remove()
    if folder := config.stash.get(_FOLDER, None):
        folder.cleanup()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """pytest-xdist: start the servers in the controller and share them with the workers."""
    node.workerinput["clusters"] = {version: _cluster_url(node.config, version) for version in ("16", "18")}


def _cluster_url(config: pytest.Config, version: str) -> str:
    if hasattr(config, "workerinput"):
        return str(config.workerinput["clusters"][version])
    clusters = config.stash[_CLUSTERS]
    if version not in clusters:
        clusters[version] = Cluster(version, config.getoption("--postgres-bin"), fastest_folder())
        engines.create_postgres_template(clusters[version].url(), Path(config.stash[_FOLDER].name))
    return clusters[version].url()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the folders with the longest tests first: at the end, workers wait for each other."""
    if not config.getoption("--all-engines"):
        deselected = [item for item in items if _is_deselected(item)]
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not _is_deselected(item)]
    items.sort(key=lambda item: item.path.parent.name not in _SLOW_FOLDERS)


def _is_deselected(item: pytest.Item) -> bool:
    """Whether this is the PostgreSQL run of a `one_engine` test, whose statements `statements` checks instead."""
    called = getattr(item, "callspec", None)
    return (
        called is not None
        and called.params.get("engine") == POSTGRES
        and item.get_closest_marker("one_engine") is not None
    )


def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection: they live until the end of the run. Collect rarely: with
    Python's thresholds the collector takes a seventh of the time of a test, because each hub allocates 20,000 objects
    for its routes.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 5, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test in a separate thread, because Playwright's event loop runs in the main thread."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    parameters = inspect.signature(pyfuncitem.obj).parameters
    run_blocking(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in parameters}))
    return True


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as users install it, built with the locked build tools."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return engines.create_sqlite_template(tmp_path_factory.mktemp("template"))


@pytest.fixture(params=["sqlite", POSTGRES], ids=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    """The database engine. Tests with this fixture run on both engines."""
    yield from _engine(request, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", POSTGRES], ids=["sqlite", "postgres"])
def shared_hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """One hub per engine for all tests of a file, which only read what a module fixture has stored."""
    folder = tmp_path_factory.mktemp("shared")
    for engine in _engine(request, folder):
        with run_hub(engines.settings_for(engine.fresh_url(), folder)) as hub:
            yield hub


@pytest.fixture(params=["sqlite", "postgres 16", "postgres 18"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    """The database engine for the storage suite, which also runs on the newest PostgreSQL."""
    yield from _engine(request, tmp_path)


def _engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[engines.Engine]:
    if request.param == "sqlite":
        template = request.getfixturevalue("sqlite_template")
        is_alone = request.node.get_closest_marker("one_engine") is not None
        with _checked_statements(request.config) if is_alone else contextlib.nullcontext():
            yield engines.SqliteEngine(template, tmp_path)
        return
    url = _cluster_url(request.config, request.param.removeprefix("postgres "))
    unused = _UNUSED.setdefault(url, [])
    engine = engines.PostgresEngine(url, unused)
    yield engine
    unused.extend(engine.created)


def _checked_statements(config: pytest.Config) -> contextlib.AbstractContextManager[None]:
    """Check statements on PostgreSQL 16 and 18 if xdist has started servers; a single SQLite test starts none."""
    shared = getattr(config, "workerinput", {}).get("clusters", {})
    return statements.check_on_postgres(
        [url.replace("/postgres?", f"/{engines.STATEMENTS}?") for url in shared.values()]
    )


@pytest.fixture
def limits(request: pytest.FixtureRequest) -> Limits:
    """The default limits, with those of the test's `limits` marker."""
    marker = request.node.get_closest_marker("limits")
    return Limits(**marker.kwargs) if marker else Limits()


@pytest.fixture
def hub(engine: engines.Engine, tmp_path: Path, limits: Limits) -> Iterator[RunningHub]:
    with run_hub(engines.settings_for(engine.fresh_url(), tmp_path), limits=limits) as hub:
        yield hub


@pytest.fixture
def sqlite_hub(
    request: pytest.FixtureRequest, sqlite_template: Path, tmp_path: Path, limits: Limits
) -> Iterator[RunningHub]:
    """A hub on SQLite, for tests that do not depend on the engine."""
    url = engines.SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with (
        _checked_statements(request.config),
        run_hub(engines.settings_for(url, tmp_path), limits=limits) as hub,
    ):
        yield hub


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_http_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3-compatible server for all tests of a worker."""
    with run_s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with run_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def stopped_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A stopped PostgreSQL server whose default database has the hub's schema."""
    cluster = Cluster("16", request.config.getoption("--postgres-bin"), fastest_folder())
    try:
        run_blocking(engines.set_up_database(cluster.url(), tmp_path_factory.mktemp("cluster")))
        cluster.stop()
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def own_cluster(stopped_cluster: Cluster) -> Iterator[Cluster]:
    """A PostgreSQL server that the test may stop, kill and restart. Its default database has the hub's schema."""
    cluster = Cluster(stopped_cluster.version, data_in=fastest_folder(), template=stopped_cluster)
    try:
        yield cluster
    finally:
        cluster.remove()


@pytest.fixture
def fault_count(request: pytest.FixtureRequest) -> int:
    count: int = request.config.getoption("--fault-count")
    return count
