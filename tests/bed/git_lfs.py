"""The git-lfs program.

`make setup` calls `python -m tests.bed.git_lfs install` when the lock has changed; `lock` updates the lock.
"""

import os
import subprocess
import sys
from pathlib import Path

from tests.bed.go_programs import GoProgram

PROGRAM = GoProgram("git-lfs", "github.com/git-lfs/git-lfs/v3", "v3.8.1")


def with_git_lfs(home: Path) -> dict[str, str]:
    """Install the git-lfs hooks in `home`; the environment variables for git."""
    variables = {"PATH": f"{PROGRAM.path.parent}:{os.environ['PATH']}", "HOME": str(home)}
    subprocess.run(["git", "lfs", "install"], cwd=home, env=variables, check=True, capture_output=True, timeout=60)
    return variables


if __name__ == "__main__":
    {"install": PROGRAM.install, "lock": PROGRAM.lock}[sys.argv[1]]()
