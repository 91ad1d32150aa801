"""`pip install hubgate` without extras: the hub's own commands name the extra, nothing shows a traceback."""

import os
import resource
import statistics
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.bed.processes import ROOT


def bare(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Python without any third-party package."""
    command = [sys.executable, "-S", "-m", "hubgate.cli", *arguments]
    variables = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("command", ["serve", "deliver", "migrate", "doctor", "admin"])
def test_server_commands_name_the_extra(tmp_path: Path, command: str) -> None:
    refused = bare(command, cwd=tmp_path)
    says = f'error: hubgate {command} needs the server. Run: pip install "hubgate[server]"\n'
    assert (refused.returncode, refused.stderr) == (1, says)


def test_user_command_names_the_missing_package(tmp_path: Path) -> None:
    refused = bare("whoami", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        1,
        'error: hubgate whoami needs httpx. Run: pip install "hubgate"\n',
    )


def test_bare_install_has_few_packages() -> None:
    """What `pip install hubgate` brings along, with what that needs."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    found: set[str] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        wanted += metadata.requires(name) or []
    assert "httpx" in found
    assert len(found) <= 10, sorted(found)


@pytest.mark.parametrize(("statement", "share"), [("import hubgate", 0.5), ("from hubgate import Hub", 2.0)])
def test_import_is_fast(statement: str, share: float) -> None:
    """In processor time and beside asyncio: a machine may be slow, or do other things too."""

    def spent(program: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT / "src")}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    rounds = [[spent(program) for program in ("pass", statement, "import asyncio")] for _ in range(10)]
    ours, known = (statistics.median(one[which] - one[0] for one in rounds) for which in (1, 2))
    assert ours < share * known


def test_help_and_version_need_nothing(tmp_path: Path) -> None:
    assert bare("--help", cwd=tmp_path).returncode == 0
    assert bare("--version", cwd=tmp_path).stdout.startswith("hubgate ")


def test_help_ends_quietly_when_its_reader_has_closed_the_pipe() -> None:
    """As in `hubgate --help | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-S", "-m", "hubgate.cli", "--help"]
    variables = {"PYTHONPATH": str(ROOT / "src")}
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(command, env=variables, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
