"""Public clients as users run them: a locked version in a virtual environment, with a separate home directory."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bed.processes import ROOT

ENVIRONMENTS = ROOT / ".venv/clients"
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Client:
    """An installed client. `name` is the name of its lock file in requirements/clients."""

    name: str
    home: Path
    endpoint: str

    def run(
        self, program: str, *arguments: str, token: str | None = None, given: str = "", seconds: int = 120, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a program of the client. `given` is its standard input; `more` are additional environment variables."""
        return subprocess.run(
            [self._path(program), *arguments],
            cwd=self.home,
            env={**self._variables, **({"HF_TOKEN": token} if token else {}), **more},
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @contextmanager
    def running(self, program: str, *arguments: str, **variables: str) -> Iterator["Conversation"]:
        """Start a program without a terminal; standard error is merged into its output."""
        process = subprocess.Popen(
            [self._path(program), *arguments],
            cwd=self.home,
            env={**self._variables, "PYTHONUNBUFFERED": "1", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield Conversation(process)
        finally:
            process.kill()
            process.communicate()

    @property
    def _variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "hf"),
            "HF_ENDPOINT": self.endpoint,
            "NO_COLOR": "1",
            # The update check would request a package registry.
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }

    def _path(self, program: str) -> Path:
        path = ENVIRONMENTS / self.name / "bin" / program
        assert path.exists(), f"{path} is missing: run make setup"
        return path


@dataclass
class Conversation:
    """An interactive exchange with a running program."""

    process: "subprocess.Popen[str]"
    output: str = ""

    def until(self, pattern: str) -> "re.Match[str]":
        """Read lines until one matches the pattern; a program that does not print it in time is killed."""
        assert self.process.stdout is not None
        timer = threading.Timer(_TIMEOUT_SECONDS, self.process.kill)
        timer.start()
        try:
            for line in self.process.stdout:
                self.output += line
                if found := re.search(pattern, line):
                    return found
        finally:
            timer.cancel()
        raise AssertionError(f"the program never printed {pattern}, but:\n{self.output}")

    def send_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def finish(self) -> str:
        """The remaining output of the program, which must exit with status 0."""
        rest, _ = self.process.communicate(timeout=60)
        self.output += rest
        assert self.process.returncode == 0, self.output
        return rest
