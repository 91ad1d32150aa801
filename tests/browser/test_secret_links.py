"""A real browser at a URL with a secret: forms on the page work, and the secret is not sent to other sites."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect
from tests.bed.people import PASSWORD, create_user, link_in, mails_to
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import password_changes
from hubgate.server.resources import Hub

pytestmark = pytest.mark.browser


@pytest.fixture
def hub(sqlite_hub: RunningHub) -> RunningHub:
    return sqlite_hub


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def page(request: pytest.FixtureRequest, browser: Browser, hub: RunningHub) -> Iterator[Page]:
    with browser.new_context(base_url=hub.url, java_script_enabled=bool(request.param)) as context:
        yield context.new_page()


def reset_link(hub: RunningHub) -> str:
    create_user(hub, "ada")

    async def work(opened: Hub) -> None:
        await password_changes.request_reset(opened.accounts, "ada@example.org")

    hub.call(work)
    return link_in(mails_to(hub, "ada@example.org")[-1])


def test_secret_is_in_no_referrer_and_the_form_is_accepted(hub: RunningHub, page: Page) -> None:
    """With a bare no-referrer Chromium would send "Origin: null", which is rejected."""
    link = reset_link(hub)
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))
    page.goto(link)
    page.get_by_label("New password").fill("another horse battery")
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("status").first).to_contain_text("Your password was changed.")
    posted = next(request for request in sent if request.method == "POST")
    assert posted.all_headers()["origin"] == hub.url
    assert len(sent) > 4
    for request in sent:
        assert link.rpartition("/")[2] not in request.all_headers().get("referer", "")


def test_theme_form_works_on_the_page_of_an_expired_link(hub: RunningHub, page: Page) -> None:
    page.goto("/reset/gone")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    with page.expect_response("**/theme") as answer:
        page.get_by_label("Theme").select_option("dark")
        button = page.get_by_role("button", name="Set")
        if button.is_visible():
            button.click()
    assert answer.value.status == 303
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    page.goto("/login")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_visitor_continues_to_the_page_after_signing_in(hub: RunningHub, page: Page) -> None:
    create_user(hub, "ada")
    page.goto("/settings/tokens")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Username or e-mail").fill("ada")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    summary = page.get_by_role("alert")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("Wrong username or password.")
    expect(page.get_by_label("Username or e-mail")).to_have_value("ada")
    expect(page.get_by_label("Password")).to_have_value("")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{hub.url}/settings/tokens")
