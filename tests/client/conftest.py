from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bed.people import create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate import Hub


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the user who runs the tests."""
    for name in ("HUBGATE_ENDPOINT", "HUBGATE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def as_user(sqlite_hub: RunningHub) -> Iterator[Callable[..., Hub]]:
    """The client of a new user."""
    opened: list[Hub] = []

    def make(name: str, **options: Any) -> Hub:
        opened.append(Hub(sqlite_hub.url, create_token(sqlite_hub, create_user(sqlite_hub, name)), **options))
        return opened[-1]

    yield make
    for hub in opened:
        hub.close()
