"""Programs in Go, built from locked sources with a locked Go toolchain (requirements/clients/git-lfs/go.txt)."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bed.clients import ENVIRONMENTS
from tests.bed.processes import ROOT

_LOCKS = ROOT / "requirements/clients"
_TOOLCHAIN = _LOCKS / "git-lfs/go.txt"


@dataclass(frozen=True)
class GoProgram:
    """A program, whose lock is the folder of its name in requirements/clients."""

    name: str
    package: str
    version: str

    @property
    def folder(self) -> Path:
        return ENVIRONMENTS / self.name

    @property
    def path(self) -> Path:
        path = self.folder / self.name
        assert path.exists(), f"{path} is missing: run make setup"
        return path

    @property
    def _locked(self) -> Path:
        return _LOCKS / self.name

    def install(self) -> None:
        """Build the program outside the checkout; the toolchain is deleted afterwards."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with _go() as go:
            for name in ("go.mod", "go.sum"):
                shutil.copy(self._locked / name, go.folder / name)
            # The sources are verified against go.sum, so the proxy need not be trusted.
            go.run("build", "-mod=readonly", "-trimpath", "-o", str(self.folder / self.name), self.package)

    def lock(self) -> None:
        self._locked.mkdir(exist_ok=True)
        with _go() as go:
            (go.folder / "go.mod").write_text("module hubgate.invalid/clients\n")
            go.run("get", "-tool", f"{self.package}@{self.version}")
            for name in ("go.mod", "go.sum"):
                shutil.copy(go.folder / name, self._locked / name)


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
        tools, locked = str(folder / "tools"), str(_TOOLCHAIN)
        subprocess.run([*uv, "venv", "--python", sys.executable, tools], check=True)
        subprocess.run([*uv, "pip", "install", "--python", tools, "--require-hashes", "-r", locked], check=True)
        (folder / "build").mkdir()
        yield _Go(folder / "build", folder / "tools/bin/go")
