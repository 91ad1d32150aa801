from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.engines import SECRET_KEY, Engine, opened_database, settings_for
from tests.bed.testbuild import TABLE
from tests.faults.watchers import Watchers, run_watchers

from hubgate.server.doctor import examine


@dataclass
class Store:
    """The database of a hub, accessed from outside the hub."""

    url: str
    folder: Path

    @property
    def flags(self) -> list[str]:
        return ["--database-url", self.url, "--secret-key", SECRET_KEY, "--data-dir", str(self.folder / "data")]

    def saved(self) -> set[str]:
        async def read() -> set[str]:
            async with opened_database(self.url) as db:
                return {row[0] for row in await db.read_long(lambda tx: tx.all("SELECT name FROM test_writes"))}

        return run_blocking(read())

    def doctor_failures(self) -> list[str]:
        """The failed checks of `hubgate doctor`."""
        findings = run_blocking(examine(settings_for(self.url, self.folder / "data")))
        return [f"{finding.check}: {finding.text}" for finding in findings if finding.level == "fail"]


def create_store(url: str, folder: Path) -> Store:
    (folder / "data").mkdir(mode=0o700)

    async def prepare() -> None:
        async with opened_database(url) as db:
            await db.write(lambda tx: tx.exec(TABLE))

    run_blocking(prepare())
    return Store(url, folder)


@pytest.fixture
def store(engine: Engine, tmp_path: Path) -> Store:
    return create_store(engine.fresh_url(), tmp_path)


@pytest.fixture
def watchers() -> Iterator[Watchers]:
    with run_watchers() as started:
        yield started
