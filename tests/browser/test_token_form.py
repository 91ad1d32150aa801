"""The forms for new tokens in a real Chromium."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.browser


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(request: pytest.FixtureRequest, browser: Browser, sqlite_hub: RunningHub) -> Iterator[Page]:
    with browser_of(sqlite_hub, create_user(sqlite_hub, "ada")) as signed_in:
        cookies = [{"name": one.name, "value": one.value, "url": sqlite_hub.url} for one in signed_in.cookies.jar]
    with browser.new_context(base_url=sqlite_hub.url, java_script_enabled=request.param) as context:
        context.add_cookies(cookies)
        yield context.new_page()


@pytest.mark.parametrize("path", ["/settings/tokens", "/settings/tokens/fine-grained"])
def test_date_is_shown_only_if_the_token_expires_on_a_date(page: Page, path: str) -> None:
    page.goto(path)
    last_day = page.get_by_label("Last day")
    expect(last_day).to_be_hidden()
    page.get_by_label("Expires").select_option("on a date")
    expect(last_day).to_be_visible()
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator(".error-summary")).to_contain_text("Enter a date")
    expect(last_day).to_be_visible()
