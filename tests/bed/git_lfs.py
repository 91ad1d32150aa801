"""The git-lfs program, built from locked sources with a locked Go toolchain (requirements/clients/git-lfs).

`make setup` calls `python -m tests.bed.git_lfs install` when the lock has changed; `lock` updates the lock.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bed.clients import ENVIRONMENTS
from tests.bed.processes import ROOT

VERSION = "v3.8.1"
FOLDER = ENVIRONMENTS / "git-lfs"
_LOCKED = ROOT / "requirements/clients/git-lfs"
_MODULE = "github.com/git-lfs/git-lfs/v3"


def with_git_lfs(home: Path) -> dict[str, str]:
    """Install the git-lfs hooks in `home`; the environment variables for git."""
    assert (FOLDER / "git-lfs").exists(), f"{FOLDER}/git-lfs is missing: run make setup"
    variables = {"PATH": f"{FOLDER}:{os.environ['PATH']}", "HOME": str(home)}
    subprocess.run(["git", "lfs", "install"], cwd=home, env=variables, check=True, capture_output=True, timeout=60)
    return variables


def install() -> None:
    """Build git-lfs outside the checkout; the toolchain is deleted afterwards."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _go() as go:
        for name in ("go.mod", "go.sum"):
            shutil.copy(_LOCKED / name, go.folder / name)
        # The sources are verified against go.sum, so the proxy need not be trusted.
        go.run("build", "-mod=readonly", "-trimpath", "-o", str(FOLDER / "git-lfs"), _MODULE)


def lock() -> None:
    with _go() as go:
        (go.folder / "go.mod").write_text("module hubgate.invalid/clients\n")
        go.run("get", "-tool", f"{_MODULE}@{VERSION}")
        for name in ("go.mod", "go.sum"):
            shutil.copy(go.folder / name, _LOCKED / name)


class _Go:
    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self._program = program
        folders = {name: str(folder / name.lower()) for name in ("GOPATH", "GOCACHE", "GOENV")}
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("GO") or name == "GOPROXY"
        }
        self._variables = {**inherited, **folders, "GOTOOLCHAIN": "local", "GOSUMDB": "off", "GOFLAGS": "-modcacherw"}
        self._variables["CGO_ENABLED"] = "0"

    def run(self, *arguments: str) -> None:
        command = [str(self._program), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self._variables, capture_output=True, text=True, timeout=900, check=False
        )
        if done.returncode:
            sys.exit(done.stderr)


@contextmanager
def _go() -> Iterator[_Go]:
    with tempfile.TemporaryDirectory(prefix="hubgate-go-") as name:
        folder = Path(name)
        uv = [sys.executable, "-m", "uv", "--quiet"]
        tools, locked = str(folder / "tools"), str(_LOCKED / "go.txt")
        subprocess.run([*uv, "venv", "--python", sys.executable, tools], check=True)
        subprocess.run([*uv, "pip", "install", "--python", tools, "--require-hashes", "-r", locked], check=True)
        (folder / "build").mkdir()
        yield _Go(folder / "build", folder / "tools/bin/go")


if __name__ == "__main__":
    {"install": install, "lock": lock}[sys.argv[1]]()
