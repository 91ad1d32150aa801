"""axe-core on a page.

It is injected once per page and returns only violations: both take longer than the check itself.
"""

from typing import Any

from axe_core_python.base import AXE_SCRIPT
from playwright.sync_api import Page


def objections(page: Page, **options: Any) -> list[tuple[str, list[str]]]:
    """The rules that the page breaks as it is shown now, and where; `options` are those of `axe.run`."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    judge = "options => axe.run(options).then(results => results.violations)"
    # No rule that is on by default needs the stylesheets, which axe-core would load again; our pages have no frames.
    spared = {"resultTypes": ["violations"], "preload": False, "iframes": False}
    found = page.evaluate(judge, spared | options)
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
