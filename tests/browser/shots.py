"""Screenshots of every page, both themes, phone and desktop: `python -m tests.browser.shots OUTDIR`.

They are for manual review against the checklist of the UX brief; nothing compares them.
"""

import argparse
from pathlib import Path

from playwright.sync_api import Browser
from tests.bed.browser import run_browser
from tests.browser.stage import PAGES, Stage, staged

WIDTHS = {390: 844, 1440: 900}
THEMES = ("light", "dark")


def take(browser: Browser, stage: Stage, folder: Path) -> int:
    """One file per page, theme and width, named by the three."""
    taken = 0
    for width, height in WIDTHS.items():
        for theme in THEMES:
            size = {"width": width, "height": height}
            with browser.new_context(viewport=size, base_url=stage.url, color_scheme=theme) as context:
                page = context.new_page()
                for name, scene in PAGES.items():
                    context.clear_cookies(name="token")
                    context.add_cookies(stage.cookies(scene.who))
                    page.goto(scene.address)
                    page.screenshot(path=folder / f"{name}-{theme}-{width}.png", full_page=True)
                    taken += 1
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with staged() as stage, run_browser() as browser:
        print(f"{take(browser, stage, folder)} screenshots in {folder}")


if __name__ == "__main__":
    main()
