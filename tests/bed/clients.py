"""Public clients as their users run them: a locked version in an environment of its own, with a home of its own."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.bed.processes import ROOT

ENVIRONMENTS = ROOT / ".venv/clients"


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
        path = ENVIRONMENTS / self.name / "bin" / program
        assert path.exists(), f"{path} is missing: run make setup"
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HF_HOME": str(self.home / "hf"),
            "HF_ENDPOINT": self.endpoint,
            "NO_COLOR": "1",
            # Whether there is a newer version, it would ask a registry.
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            **({"HF_TOKEN": token} if token else {}),
            **more,
        }
        return subprocess.run(
            [path, *arguments],
            cwd=self.home,
            env=variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
