"""axe-core on a page.

It is injected once per page and returns only violations: both take longer than the check itself.
"""

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

Violations = list[tuple[str, list[str]]]

# No rule that is on by default needs the stylesheets, which axe-core would load again; our pages have no frames.
_DEFAULTS = {"resultTypes": ["violations"], "preload": False, "iframes": False}

_VISIBLE = "[...document.body.querySelectorAll('*')].filter(element => element.checkVisibility())"


def objections(page: Page, **options: Any) -> Violations:
    """The rules that the page breaks as it is shown now, and where; `options` are those of `axe.run`."""
    return _run(page, "document", options)


def remember_visible(page: Page) -> None:
    page.evaluate(f"window.alreadyVisible = new Set({_VISIBLE})")


def objections_to_new_colors(page: Page) -> Violations:
    """The contrast of the elements that were not visible at the last `remember_visible`."""
    if not page.evaluate(f"(window.newlyVisible = {_VISIBLE}.filter(one => !alreadyVisible.has(one))).length"):
        return []
    return _run(page, "{ include: newlyVisible }", {"runOnly": ["color-contrast"]})


def _run(page: Page, context: str, options: dict[str, Any]) -> Violations:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    judge = f"options => axe.run({context}, options).then(results => results.violations)"
    found = page.evaluate(judge, _DEFAULTS | options)
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
