"""huggingface_hub in Python, from old to new: everything it does with repos (apps/hf_library.py has the checks)."""

import json
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


@pytest.mark.parametrize("version", ["0.26", "0.36", "1.28", "2.4"])
def test_every_check(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    name = "kit-" + version.replace(".", "-")
    program = str(PROGRAMS / "hf_library.py")
    done = client.run("python", program, str(tmp_path / "work"), name, shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert not failed, "\n".join(failed.values())
