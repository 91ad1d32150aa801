"""`pip install hubgate` without extras: the hub's own commands name the extra, nothing shows a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.bed.processes import ROOT


def bare(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Python without any third-party package."""
    command = [sys.executable, "-S", "-m", "hubgate.cli", *arguments]
    variables = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("command", ["serve", "deliver", "migrate", "doctor", "admin"])
def test_the_hubs_commands_name_the_extra(tmp_path: Path, command: str) -> None:
    refused = bare(command, cwd=tmp_path)
    says = f'error: hubgate {command} needs the server. Run: pip install "hubgate[server]"\n'
    assert (refused.returncode, refused.stderr) == (1, says)


def test_help_and_version_need_nothing(tmp_path: Path) -> None:
    assert bare("--help", cwd=tmp_path).returncode == 0
    assert bare("--version", cwd=tmp_path).stdout.startswith("hubgate ")
