"""The pictures of the README, taken from the demo: `python -m tests.browser.pictures OUTDIR`.

They show what a user sees who signs in to the example app, and a month of deliveries of a webhook.
"""

import argparse
import re
import tempfile
from pathlib import Path

from playwright.sync_api import Page
from tests.bed.browser import run_browser
from tests.bed.demo import RunningDemo, started

_SIZE = {"width": 1200, "height": 800}


def take(page: Page, demo: RunningDemo, folder: Path) -> None:
    page.goto(f"{demo.named('example app')}/login")
    page.fill("[name=username]", "ada")
    page.fill("[name=password]", demo.password("ada"))
    page.press("[name=password]", "Enter")
    page.wait_for_url(re.compile("/oauth/authorize"))
    page.screenshot(path=folder / "consent.png")
    page.goto(next(link for link in demo.links if "range=month" in link))
    page.screenshot(path=folder / "deliveries.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        started(Path(data)) as demo,
        run_browser() as browser,
        browser.new_context(viewport=_SIZE, color_scheme="light") as context,
    ):
        demo.wait_for("Ctrl-C stops all")
        take(context.new_page(), demo, folder)
        demo.stop()


if __name__ == "__main__":
    main()
