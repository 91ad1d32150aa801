"""Public clients as their users run them: a locked version in an environment of its own, with a home of its own."""

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
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Client:
    """`name` is that of its lock in requirements/clients."""

    name: str
    home: Path
    endpoint: str

    def run(
        self, program: str, *arguments: str, token: str | None = None, given: str = "", seconds: int = 120, **more: str
    ) -> "subprocess.CompletedProcess[str]":
        """`given` is its standard input; `more` are further variables of its environment."""
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
        """Without a terminal. Its errors come among what it prints."""
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
            # Whether there is a newer version, it would ask a registry.
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }

    def _path(self, program: str) -> Path:
        path = ENVIRONMENTS / self.name / "bin" / program
        assert path.exists(), f"{path} is missing: run make setup"
        return path


@dataclass
class Conversation:
    """With a program that waits for something in between."""

    process: "subprocess.Popen[str]"
    said: str = ""

    def until(self, pattern: str) -> "re.Match[str]":
        """What it says, line by line, up to the first line that holds the pattern. One that is silent is ended."""
        assert self.process.stdout is not None
        patience = threading.Timer(_PATIENCE_SECONDS, self.process.kill)
        patience.start()
        try:
            for line in self.process.stdout:
                self.said += line
                if found := re.search(pattern, line):
                    return found
        finally:
            patience.cancel()
        raise AssertionError(f"it never said {pattern}, but:\n{self.said}")

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Its last words; it has to end well."""
        rest, _ = self.process.communicate(timeout=60)
        self.said += rest
        assert self.process.returncode == 0, self.said
        return rest
