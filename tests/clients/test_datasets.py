"""datasets, with only HF_ENDPOINT set: tables are uploaded as Parquet files and read back."""

import json
from pathlib import Path

from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


def test_tables_are_uploaded_and_loaded(shared: Shared, tmp_path: Path) -> None:
    client = Client("datasets", tmp_path, shared.hub.url)
    done = client.run("python", str(PROGRAMS / "datasets_repos.py"), token=shared.ada)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said == {
        "rows": ["one", "two"],
        "streamed": [0, 1],
        "configurations": ["default", "numbers"],
        "sizes": {"train": 50_000, "test": 100},
        "sum": sum(range(50_000)),
        "copy": 50_000,
    }
