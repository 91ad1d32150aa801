"""A real Chromium: from the system, else (as root, on Debian) from apt, else from Playwright.

Preferably its headless shell, which takes half the CPU time: it is Chromium without the windows of a desktop program.

`python -m tests.bed.browser` installs Chromium if necessary; `make test` calls it first.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

_HEADLESS = "chromium-headless-shell"
_NAMES = (_HEADLESS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
# Without these, Chromium contacts Google at every start, which fails on a closed network.
_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Pages live too short for the optimizing compiler: without it, Chromium takes a quarter less CPU time.
    "--js-flags=--no-opt",
)


def find_chromium() -> str | None:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and _MAC.exists():
        found = str(_MAC)
    return found or _playwright_chromium()


def install_if_missing() -> None:
    if shutil.which(_HEADLESS):
        return
    if os.getuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "update", "-q")
        _run("apt-get", "install", "-yq", "--no-install-recommends", _HEADLESS)
    if not find_chromium() and not _run(sys.executable, "-m", "playwright", "install", "chromium"):
        sys.exit("No Chromium was found and none could be installed. Install chromium, then run make test again.")


@contextmanager
def run_browser() -> Iterator[Browser]:
    arguments = [*_ARGUMENTS, *(["--no-sandbox"] if os.getuid() == 0 else [])]
    # On a busy machine a page can take longer than the default of five seconds.
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def _playwright_chromium() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if path and Path(path).exists() else None


def _run(*command: str) -> bool:
    print("Installing a browser:", " ".join(command[-3:]), flush=True)
    try:
        return subprocess.run(command, timeout=600, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


if __name__ == "__main__":
    install_if_missing()
