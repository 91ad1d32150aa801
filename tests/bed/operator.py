"""The operator's command line, configured for a hub."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.bed.engines import SECRET_KEY, Engine
from tests.bed.processes import hubgate


class Operator:
    def __init__(self, engine: Engine, folder: Path) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.variables = {
            "HUBGATE_DATABASE_URL": engine.fresh_url(),
            "HUBGATE_SECRET_KEY": SECRET_KEY,
            "HUBGATE_DATA_DIR": str(self.data_dir),
        }
        self.data_dir.mkdir(mode=0o700)

    def run(self, *arguments: str, stdin: bytes = b"", **variables: str) -> "subprocess.CompletedProcess[str]":
        return hubgate(*arguments, cwd=self.folder, stdin=stdin, **{**self.variables, **variables})

    def json(self, *arguments: str, stdin: bytes = b"", **variables: str) -> Any:
        """The JSON output of a command, which must succeed without other output."""
        done = self.run(*arguments, "--json", stdin=stdin, **variables)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout)

    def error_message(self, *arguments: str, stdin: bytes = b"", **variables: str) -> str:
        """The error message of a command, which must fail with a single line."""
        done = self.run(*arguments, stdin=stdin, **variables)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("error: ").strip()
