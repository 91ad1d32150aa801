"""Pages for app developers in a real Chromium: results of forms, with and without script."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect
from tests.browser.axe import objections
from tests.browser.cast_builders import ACMES, EXPLAINED
from tests.browser.stage import Stage, staged

pytestmark = pytest.mark.browser

PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture(params=["light", "dark"])
def ada(request: pytest.FixtureRequest, browser: Browser, stage: Stage) -> Iterator[BrowserContext]:
    permissions = ["clipboard-read", "clipboard-write"]
    with browser.new_context(base_url=stage.url, color_scheme=request.param, permissions=permissions) as context:
        context.add_cookies(stage.cookies("ada"))
        yield context


def expect_well_made(page: Page) -> None:
    """The checks that test_shell.py does for pages with their own URL."""
    assert page.locator(".button-primary").count() <= 1
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert objections(page) == []


def test_new_app_shows_its_secret_once(ada: BrowserContext) -> None:
    page = ada.new_page()
    page.goto("/settings/applications/new")
    page.get_by_label("Name", exact=True).fill("نوت‏بوك Atlas of everything that can be signed in to with this")
    page.get_by_label("Redirect URIs").fill("https://app.example/callback\nhttp://localhost/cb")
    page.get_by_role("checkbox", name="Required read-repos").check()
    page.get_by_role("button", name="Create app").click()
    # A direction mark is not allowed in a name.
    expect(page.get_by_role("alert")).to_contain_text("An app's name must have 1 to 96 printable characters.")
    expect(page.get_by_role("checkbox", name="Required read-repos")).to_be_checked()
    expect_well_made(page)
    page.get_by_label("Name", exact=True).fill("Atlas of everything that can be signed in to with this hub")
    page.get_by_role("button", name="Create app").click()
    secret = page.get_by_label("Client secret").input_value()
    assert secret.startswith("hfcs_")
    expect_well_made(page)
    page.get_by_role("button", name="Copy Client secret").click()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    page.reload()
    expect(page.get_by_text("Already created. The secret cannot be shown again.")).to_be_visible()
    assert secret not in page.content()


def test_organizations_app_gets_a_new_secret(ada: BrowserContext) -> None:
    page = ada.new_page()
    page.goto(f"{ACMES}/secret")
    page.get_by_label("Overlap").select_option(label="2 days")
    page.get_by_role("button", name="Create a new secret for Atlas Notebook").click()
    expect(page.get_by_text("The old secret stays valid for 2 days.")).to_be_visible()
    # The warning about token exchange appears only once the operator has granted it.
    expect(page.get_by_text("Keep it on a server.")).to_have_count(0)
    expect_well_made(page)


def test_metadata_document_is_checked(ada: BrowserContext) -> None:
    page = ada.new_page()
    page.goto("/docs/cimd")
    page.get_by_label("Address of the document").fill("http://app.example/../x#y")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("checks failed.")
    expect(page.get_by_text("Serve the document over https.")).to_be_visible()
    expect_well_made(page)


def test_essential_columns_and_code_are_visible_on_a_phone(ada: BrowserContext) -> None:
    page = ada.new_page()
    page.set_viewport_size(PHONE)
    page.goto("/settings/connected")
    expect(page.get_by_role("link", name="Revoke Slow Notes")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Last use")).to_be_hidden()
    page.goto(ACMES)
    errors = page.get_by_role("region", name="Recent errors")
    expect(errors.get_by_text("Nothing was shared.").locator("visible=true")).to_have_count(1)
    page.goto("/docs/sign-in")
    for code in page.locator(".code-lines pre").all():
        assert code.evaluate("lines => lines.clientWidth / lines.parentElement.clientWidth") > 0.95
    page.goto(EXPLAINED)
    sent, registered = (page.get_by_role("cell", name=name).first.bounding_box() for name in ("Sent", "Registered"))
    assert sent is not None
    assert registered is not None
    assert sent["x"] == registered["x"]
    assert sent["y"] < registered["y"]


def test_everything_works_without_script(browser: Browser, stage: Stage) -> None:
    with browser.new_context(base_url=stage.url, java_script_enabled=False) as context:
        context.add_cookies(stage.cookies("newcomer"))
        page = context.new_page()
        page.goto("/settings/applications")
        expect(page.get_by_text("Let people sign in to your site with this hub.")).to_be_visible()
        page.get_by_role("link", name="New app").click()
        page.get_by_label("Name", exact=True).fill("Plain")
        page.get_by_label("Secret", exact=True).select_option("no")
        page.get_by_role("button", name="Create app").click()
        expect(page.get_by_role("heading", name="Quick start")).to_be_visible()
        page.get_by_role("link", name="Settings of Plain").click()
        page.get_by_role("link", name="Delete…").click()
        page.get_by_label("Type Plain").fill("Plain")
        page.get_by_role("button", name="Delete Plain").click()
        expect(page.get_by_role("status")).to_have_text("Deleted Plain.")
