"""Access requests with huggingface_hub (apps/hf_access.py has the checks)."""

from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


@pytest.mark.parametrize("version", ["1.28", "2.4"])
def test_access_is_granted_and_revoked(shared: Shared, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, shared.hub.url)
    name = "gated-" + version.replace(".", "-")
    done = client.run("python", str(PROGRAMS / "hf_access.py"), name, shared.bob, token=shared.ada)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")
