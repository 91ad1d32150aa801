"""`pip install hubgate` on a machine that has nothing: the built wheel, few packages, and a receiver in ten lines."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.processes import ROOT
from tests.bed.receivers import EXAMPLES, PORT_OF_ITS_OWN, SECRET, Script

from hubgate.receiver.testing import signed

LOCK = ROOT / "requirements/clients/hubgate.txt"
MOST_PACKAGES = 10


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (wheel,) = folder.glob("*.whl")
    uv = Path(sys.executable).parent / "uv"
    made = folder / "venv/bin/python"
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
    # `make setup` has fetched them already.
    run(uv, "pip", "install", "--quiet", "--offline", "--python", made, "--require-hashes", "-r", LOCK)
    run(uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", made, wheel)
    run(uv, "pip", "check", "--python", made)
    return made


def test_the_lock_is_of_what_the_package_needs() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    written = (ROOT / "requirements/clients/hubgate.in").read_text().splitlines()
    assert sorted(wanted) == sorted(line for line in written if not line.startswith("#"))


def test_few_packages(python: Path) -> None:
    found = run(
        Path(sys.executable).parent / "uv", "pip", "list", "--format", "freeze", "--python", python
    ).splitlines()
    assert 1 < len(found) <= MOST_PACKAGES, found


def test_a_receiver_of_ten_lines(python: Path, tmp_path: Path) -> None:
    example = (EXAMPLES / "receiver.py").read_text()
    code = [line for line in example.splitlines() if line and not re.match(r' *"""', line)]
    assert len(code) <= 10
    (tmp_path / "app.py").write_text(PORT_OF_ITS_OWN + example)
    script = Script(tmp_path / "app.py", python=str(python), WEBHOOK_SECRET=SECRET, PYTHONPATH="").wait_for(1)
    try:
        delivery = signed("repo.content.update", type="dataset", secret=SECRET)
        answer = httpx.post(script.addresses[0], headers=delivery.headers, content=delivery.body)
        assert (answer.status_code, answer.json()) == (200, {"seen": "a" * 40})
        assert script.process.stdout is not None
        assert script.process.stdout.readline() == f"training on ada/tiny at {'a' * 40}\n"
        assert "Webhook receiver" in httpx.get(script.url).text
        assert httpx.get(f"{script.url}/landing.css").status_code == 200
    finally:
        assert script.stop() == 0
    assert script.errors == ""
