"""Commits, downloads and clones, compared with programs that do the same without a hub."""

import contextlib
import shutil
import subprocess

import pygit2

from bench import commit_parts, nginx, repo_clones, repo_commits, repo_files
from bench.harness import Table
from bench.repo_hubs import POSTGRES, SQLITE, repo_hub_process
from bench.workspace import Workspace

# Programs that are required besides the test tools, and their packages.
NEEDED = {"nginx": "nginx", "git": "git"}


def missing() -> str | None:
    """An error message that names missing packages, or None."""
    absent = [package for program, package in NEEDED.items() if shutil.which(program) is None]
    return f"repos and large-files need {' and '.join(absent)}: apt-get install {' '.join(absent)}" if absent else None


def facts() -> dict[str, str]:
    done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    return {
        "git": f"{done.stdout.split()[-1]}, libgit2 {pygit2.LIBGIT2_VERSION}",
        "nginx": nginx.version(),
    }


def measure(workspace: Workspace) -> list[Table]:
    with contextlib.ExitStack() as stack:
        hubs = {name: stack.enter_context(repo_hub_process(workspace, name)) for name in (SQLITE, POSTGRES)}
        return [
            *repo_commits.measure(workspace, hubs),
            *commit_parts.measure(workspace, hubs),
            *repo_files.measure(workspace, hubs),
            *repo_clones.measure(workspace, hubs[SQLITE]),
        ]
