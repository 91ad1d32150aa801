import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.bed.processes import ROOT

LOCK = ROOT / "requirements/clients/hubgate.txt"


def run(*command: str | Path) -> str:
    # PYTHONPATH would show the package of the source tree instead of the installed one.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the built wheel and what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    uv = Path(sys.executable).parent / "uv"
    made = folder / "venv/bin/python"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
    # `make setup` has fetched them already.
    run(uv, "pip", "install", "--quiet", "--offline", "--python", made, "--require-hashes", "-r", LOCK)
    run(uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", made, wheel)
    run(uv, "pip", "check", "--python", made)
    return made
