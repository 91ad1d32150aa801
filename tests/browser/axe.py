"""axe-core on a page.

It is injected once per page and returns only violations: both take longer than the check itself.

Two thirds of axe-core's time go to its rule about contrast, and the headers, footers and controls of all pages look
alike. Text of an appearance that has passed this rule in this process does not run it again (contrast.js); all other
rules check every page in full.
"""

from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

Violations = list[tuple[str, list[str]]]

# No rule that is on by default needs the stylesheets, which axe-core would load again; our pages have no frames.
_DEFAULTS = {"resultTypes": ["violations"], "preload": False, "iframes": False}
_CONTRAST = "color-contrast"
# The attribute of the elements that the rule about contrast checks.
_MARK = "data-check-contrast"
_CONFIGURE = f"axe.configure({{ rules: [{{ id: '{_CONTRAST}', selector: '[{_MARK}]' }}] }})"
_RUN = "options => axe.run(document, options).then(results => results.violations)"
_MARK_NEW = Path(__file__).with_name("contrast.js").read_text().strip()
# The appearances that have passed: numbers that contrast.js computes.
_passed: set[int] = set()

_VISIBLE = "[...document.body.querySelectorAll('*')].filter(element => element.checkVisibility())"


def objections(page: Page) -> Violations:
    """The rules that the page breaks as it is shown now, and where."""
    added = _mark_new(page, _VISIBLE)
    return _run(page, _DEFAULTS, added)


def remember_visible(page: Page) -> None:
    page.evaluate(f"window.alreadyVisible = new Set({_VISIBLE})")


def objections_to_new_colors(page: Page) -> Violations:
    """The contrast of the elements that were not visible at the last `remember_visible`."""
    added = _mark_new(page, f"{_VISIBLE}.filter(one => !alreadyVisible.has(one))")
    if not page.locator(f"[{_MARK}]").count():
        return []
    return _run(page, {**_DEFAULTS, "runOnly": [_CONTRAST]}, added)


def _mark_new(page: Page, elements: str) -> list[int]:
    """Mark the elements of new appearance, and of none; the new appearances."""
    mark = f"([passed, mark]) => ({_MARK_NEW})([{elements}, passed, mark])"
    added: list[int] = page.evaluate(mark, [list(_passed), _MARK])
    return added


def _run(page: Page, options: dict[str, Any], added: list[int]) -> Violations:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
        page.evaluate(_CONFIGURE)
    found = page.evaluate(_RUN, options)
    violations = [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
    if not any(rule == _CONTRAST for rule, _ in violations):
        _passed.update(added)
    return violations
