"""`pip install hubgate` in an empty environment: the built wheel, few packages, and a receiver in ten lines."""

import re
import sys
import tomllib
from pathlib import Path

import httpx
from tests.bed.processes import ROOT
from tests.bed.receiver_library import EXAMPLES, RANDOM_PORT, SECRET, Script
from tests.receiver.conftest import run

from hubgate.receiver.testing import signed_delivery

MAX_PACKAGES = 10


def test_lock_matches_the_package_dependencies() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    written = (ROOT / "requirements/clients/hubgate.in").read_text().splitlines()
    assert sorted(wanted) == sorted(line for line in written if not line.startswith("#"))


def test_package_has_few_dependencies(python: Path) -> None:
    found = run(
        Path(sys.executable).parent / "uv", "pip", "list", "--format", "freeze", "--python", python
    ).splitlines()
    assert 1 < len(found) <= MAX_PACKAGES, found


def test_package_contains_the_documentation(python: Path) -> None:
    code = "import hubgate, pathlib; print(*(one.name for one in pathlib.Path(hubgate.__file__).parent.rglob('*.md')))"
    assert {"quick-start.md", "errors.md", "inside.md"} <= set(run(python, "-c", code).split())


def test_installed_receiver_works_in_ten_lines(python: Path, tmp_path: Path) -> None:
    example = (EXAMPLES / "receiver.py").read_text()
    code = [line for line in example.splitlines() if line and not re.match(r' *"""', line)]
    assert len(code) <= 10
    (tmp_path / "app.py").write_text(RANDOM_PORT + example)
    script = Script(tmp_path / "app.py", python=str(python), WEBHOOK_SECRET=SECRET, PYTHONPATH="").wait_for(1)
    try:
        delivery = signed_delivery("repo.content.update", type="dataset", secret=SECRET)
        answer = httpx.post(script.addresses[0], headers=delivery.headers, content=delivery.body)
        assert (answer.status_code, answer.json()) == (200, {"seen": "a" * 40})
        assert script.process.stdout is not None
        assert script.process.stdout.readline() == f"training on ada/tiny at {'a' * 40}\n"
        assert "Webhook receiver" in httpx.get(script.url).text
        assert httpx.get(f"{script.url}/landing.css").status_code == 200
    finally:
        assert script.stop() == 0
    assert script.errors == ""
