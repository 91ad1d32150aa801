"""@huggingface/hub and repos: made, filled, read, listed, changed and deleted (apps/repos.mjs has the checks)."""

import json
import subprocess
from pathlib import Path

from tests.bed.node import CLIENTS, NODE
from tests.bed.sites import PROGRAMS
from tests.clients.conftest import Shared


def test_every_check(shared: Shared, tmp_path: Path) -> None:
    assert CLIENTS.exists(), f"{CLIENTS} is missing: run make setup"
    variables = {"HUB": shared.hub.url, "TOKEN": shared.ada, "OTHERS_TOKEN": shared.bob}
    # As text, because a module is resolved from where it stands.
    program = (PROGRAMS / "repos.mjs").read_text()
    done = subprocess.run(
        [NODE, "--input-type=module", "--eval", program],
        cwd=CLIENTS,
        env={**variables, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert not failed, "\n".join(failed.values())
