"""The stores that tests run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed import engines
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.s3_server import S3Server
from tests.objects.stores import Place, bucket_place

from hubgate.server.hub.context import Limits


@pytest.fixture
def bucket(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """An empty prefix in a bucket. Hubs of this process find its credentials in the environment."""
    for name, value in s3_server.variables.items():
        monkeypatch.setenv(name, value)
    return bucket_place(s3_server, tmp_path)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Every kind of store. Tests with this fixture run on all of them."""
    if request.param == "folder":
        return Place(tmp_path)
    found: Place = request.getfixturevalue("bucket")
    return found


@pytest.fixture
def hub_on_store(engine: engines.Engine, place: Place, tmp_path: Path, limits: Limits) -> Iterator[RunningHub]:
    """A hub on every engine and every kind of store."""
    with run_hub(engines.settings_for(engine.fresh_url(), tmp_path, **place.flags), limits=limits) as hub:
        yield hub
