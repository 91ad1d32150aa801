"""The page of a replay in a real Chromium."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.cast_webhooks import RUNNING_REPLAY
from tests.browser.stage import Stage, staged

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


def test_progress_is_updated_without_a_reload(browser: Browser, stage: Stage) -> None:
    with browser.new_context(base_url=stage.url) as context:
        context.add_cookies(stage.cookies("ada"))
        page, other = context.new_page(), context.new_page()
        page.goto(RUNNING_REPLAY)
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "3210")
        page.evaluate("window.wasNotReloaded = true")
        other.goto(RUNNING_REPLAY)
        other.get_by_role("button", name="Cancel").click()
        expect(other.get_by_text("Cancelled.", exact=True)).to_be_visible()
        expect(page.locator("#replay")).to_contain_text("3,210 of 12,800 sent")
        expect(page.locator("#replay .badge")).to_contain_text("Cancelled")
        expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
        assert page.evaluate("window.wasNotReloaded")
