"""Every page in a real Chromium: silent console, no axe-core violations, phones, themes, keyboard."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect
from tests.browser import cast_apps
from tests.browser.axe import objections, objections_to_new_colors, remember_visible
from tests.browser.layout import broken_words, cut_tables, visible_texts
from tests.browser.stage import ERRORS, LAYOUTS, PAGES, Scene, Stage, staged

pytestmark = pytest.mark.browser

PHONE: ViewportSize = {"width": 390, "height": 844}
DESKTOP: ViewportSize = {"width": 1440, "height": 900}
SMALLEST: ViewportSize = {"width": 320, "height": 568}
PAGE_BUDGET = 25_000
CANVAS = {"light": "rgb(246, 247, 245)", "dark": "rgb(16, 19, 17)"}

_HEADER = """() => {
    const bar = document.querySelector(".site-header .bar");
    const parts = [...bar.querySelectorAll("a, input, .button, img")].map(part => part.getBoundingClientRect().right);
    return [bar.offsetHeight, Math.max(...parts)];
}"""

Opener = Callable[..., BrowserContext]
Looker = Callable[[str], Page]

every_layout = pytest.mark.parametrize("scene", LAYOUTS.values(), ids=LAYOUTS.keys())
both_themes = pytest.mark.parametrize("theme", CANVAS)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture
def opened(browser: Browser, stage: Stage) -> Iterator[Opener]:
    """A fresh browser, signed in as a user of the cast or as nobody, with the options of the test."""
    with ExitStack() as stack:

        def open_context(who: str = "visitor", **options: Any) -> BrowserContext:
            context = browser.new_context(base_url=stage.url, **options)
            stack.callback(context.close)
            context.add_cookies(stage.cookies(who))
            return context

        yield open_context


@pytest.fixture(scope="module")
def looking(browser: Browser, stage: Stage) -> Iterator[Looker]:
    """A page for each user of the cast, for tests that only read: a fresh browser for each URL would take longer
    than the test. It starts blank, in a light theme.
    """
    with ExitStack() as stack:

        @cache
        def own_page(who: str) -> Page:
            context = browser.new_context(base_url=stage.url, reduced_motion="reduce")
            stack.callback(context.close)
            context.add_cookies(stage.cookies(who))
            return context.new_page()

        def look(who: str) -> Page:
            page = own_page(who)
            # Pending requests of the last page fail now, before anything listens.
            page.goto("about:blank")
            page.emulate_media(color_scheme="light")
            return page

        yield look


@every_layout
def test_page_follows_the_rules(looking: Looker, scene: Scene) -> None:
    """No console messages or axe-core violations, no horizontal scrolling, unbroken words, one primary button,
    targets of sufficient size.
    """
    page = looking(scene.who)
    _expect_sound_page(page, scene)
    assert page.locator(".button-primary").count() <= 1
    assert page.locator("time:not([title])").count() == 0, "not shown in local time"
    for size in (DESKTOP, SMALLEST, PHONE):
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        if size != SMALLEST:
            assert broken_words(page) == []
            # The reference tables of the docs are wider than a phone.
            assert scene.address.startswith("/docs/") or cut_tables(page) == []
    _expect_targets_for_thumbs(page)
    # The API pages repeat one template hundreds of times; a few of each kind suffice.
    repeated = page.locator(":is(.operation, .operations > li, .shapes > li):nth-of-type(n + 4)")
    repeated.evaluate_all("found => found.forEach(one => one.remove())")
    # In full on a phone in light and on a desktop in dark. Themes differ in colours only, so in light the desktop adds
    # the colours of the elements that a phone hides.
    assert objections(page) == []
    remember_visible(page)
    page.set_viewport_size(DESKTOP)
    assert objections_to_new_colors(page) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", CANVAS["dark"])
    assert objections(page) == []


@pytest.mark.parametrize("scene", [PAGES[name] for name in PAGES if name not in LAYOUTS])
def test_other_pages_are_clean(looking: Looker, scene: Scene) -> None:
    _expect_sound_page(looking(scene.who), scene)


def test_connected_apps_show_every_scope_on_a_phone(looking: Looker) -> None:
    page = looking("bob")
    page.set_viewport_size(PHONE)
    page.goto(PAGES["settings-connected-scopes"].address)
    assert sorted(visible_texts(page, ".scope")) == sorted(["openid", *cast_apps.EVERY_SCOPE.split()])


def _expect_sound_page(page: Page, scene: Scene) -> None:
    """A silent console, and no more to load than the budget allows."""
    said: list[str] = []
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "requestfailed": lambda request: said.append(f"{request.url} failed"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    answer = page.goto(scene.address)
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    assert answer is not None
    assert answer.status == scene.status
    # Chromium itself reports the status of an error page; a blocked style or script would be another message.
    own_status = f"Failed to load resource: the server responded with a status of {answer.status} "
    assert [line for line in said if not line.startswith(own_status)] == []
    _expect_little_and_nothing_inline(answer.body())


def _expect_targets_for_thumbs(page: Page) -> None:
    """Links inside running text are exempt, as in WCAG 2.5.8."""
    typed = "input:not([type=hidden], [type=checkbox], [type=radio])"
    controls = f".site-header a, footer a, button, .button, select, {typed}, summary, .choice, .tabs a"
    small = (
        page.locator(controls)
        .locator("visible=true")
        .evaluate_all(
            """found => found.filter(control => {
            const { width, height } = control.getBoundingClientRect();
            return width < 44 || height < 44;
        }).map(control => control.outerHTML)"""
        )
    )
    assert small == []
    # In a cell whose link opens something, the whole cell is the target.
    dead = page.locator("td.opens").evaluate_all(
        """found => found.filter(cell => {
            cell.scrollIntoView({ block: "center" });
            const { left, top, bottom } = cell.getBoundingClientRect();
            // Away from the rounded corner of the table, and from what may be scrolled out of sight.
            const leads = y => document.elementFromPoint(left + 16, y)?.closest("a") === cell.querySelector("a");
            return bottom - top < 44 || !leads(top + 2) || !leads(bottom - 2);
        }).map(cell => cell.outerHTML)"""
    )
    assert dead == []


def _expect_little_and_nothing_inline(content: bytes) -> None:
    assert len(gzip.compress(content)) < PAGE_BUDGET
    html = content.decode().lower()
    assert " style=" not in html
    assert "<style" not in html
    assert " on" + "click" not in html
    assert html.count("<script") == html.count('<script type="module" src="/static/') == 1


@pytest.mark.parametrize("who", ["ada", "visitor"])
def test_header_is_as_low_as_its_width_allows(looking: Looker, who: str) -> None:
    """Three rows on a phone, two on a tablet, one from 900 px on; nothing is cut off or pushed out."""
    page = looking(who)
    page.goto("/models")
    for width in range(320, 1441, 10):
        page.set_viewport_size({"width": width, "height": 700})
        height, right = page.evaluate(_HEADER)
        assert height == (152 if width < 600 else 104 if width < 900 else 56), width
        assert right <= width, width


def test_api_index_is_short_on_a_phone(looking: Looker) -> None:
    page = looking("visitor")
    page.set_viewport_size(PHONE)
    page.goto("/docs/api")
    assert page.evaluate("document.documentElement.scrollHeight") < 3 * PHONE["height"]
    # A link to an operation from before the subjects had pages still shows it.
    operation = page.locator(".operations li").first
    expect(operation).to_be_hidden()
    page.goto(f"/docs/api#{operation.get_attribute('id')}")
    expect(operation).to_be_in_viewport()
    page.goto("/docs/api")
    page.get_by_role("link", name="Webhooks and events").last.click()
    page.get_by_text("operations on this page").click()
    page.get_by_role("link", name="/api/settings/webhooks", exact=True).first.click()
    expect(page.locator(".operation:target")).to_be_in_viewport()


@both_themes
def test_theme_form_works_without_script(opened: Opener, theme: str) -> None:
    other = "light" if theme == "dark" else "dark"
    context = opened(java_script_enabled=False, color_scheme=other)
    page = context.new_page()
    page.goto("/docs/api?from=here")
    page.get_by_label("Theme").select_option(theme)
    page.get_by_role("button", name="Set").click()
    page.wait_for_url("**/docs/api?from=here")
    _expect_theme(page, theme)
    again = context.new_page()
    again.goto("/")
    _expect_theme(again, theme)
    expect(again.get_by_label("Theme")).to_have_value(theme)


def test_theme_applies_at_once_with_script(opened: Opener) -> None:
    context = opened(color_scheme="light")
    page = context.new_page()
    page.goto("/docs/api")
    page.evaluate("window.notReloaded = true")
    expect(page.get_by_role("button", name="Set")).to_be_hidden()
    with page.expect_response("**/theme"):
        page.get_by_label("Theme").select_option("dark")
    _expect_theme(page, "dark")
    assert page.evaluate("window.notReloaded")
    page.goto("/")
    _expect_theme(page, "dark")


def test_theme_form_on_the_answer_to_a_form_leads_home(opened: Opener) -> None:
    """The error page of a POST has no URL to return to."""
    page = opened(java_script_enabled=False).new_page()
    page.goto("/")
    page.context.clear_cookies()
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Models and datasets")


@pytest.mark.parametrize("name", ERRORS)
def test_error_page_shows_cause_remedy_and_request_id(opened: Opener, name: str) -> None:
    page = opened().new_page()
    answer = page.goto(f"/stage/errors/{name}")
    assert answer is not None
    assert answer.status == int(name[:3])
    assert answer.headers["x-request-id"] == page.locator("#request-id").inner_text()
    paragraphs = [text for text in page.locator("main p").all_inner_texts() if text.endswith(".")]
    assert len(paragraphs) == 2
    if name != "500":
        assert paragraphs[0] == str(ERRORS[name])
    assert "foresaw" not in page.content()


def test_skip_link_is_the_first_stop(opened: Opener) -> None:
    page = opened().new_page()
    page.goto("/")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    expect(focused).to_have_text("Skip to content")
    expect(focused).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Sign in")


@both_themes
def test_focus_is_visible_on_every_stop(opened: Opener, theme: str) -> None:
    page = opened(color_scheme=theme).new_page()
    page.goto(PAGES["docs-sign-in"].address)
    for _ in range(page.locator("a, button, select, summary").locator("visible=true").count()):
        page.keyboard.press("Tab")
        outline = page.evaluate(
            "(style => [style.outlineStyle, style.outlineWidth])(getComputedStyle(document.activeElement))"
        )
        assert outline == ["solid", "2px"]


def test_copy_button_copies_the_value_and_says_so(opened: Opener, stage: Stage) -> None:
    context = opened(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto("/docs/api")
    page.get_by_role("button", name="Copy hub address").click()
    expect(page.get_by_role("status")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == stage.url


def test_typing_a_secret_selects_it(opened: Opener) -> None:
    page = opened("ada").new_page()
    page.goto(PAGES["webhook-new"].address)
    own = page.get_by_label("Use this one:")
    expect(own).not_to_be_checked()
    page.get_by_label("Your secret").press_sequentially("m")
    expect(own).to_be_checked()


def test_controls_that_need_script_are_hidden_without_it(opened: Opener) -> None:
    page = opened(java_script_enabled=False).new_page()
    page.goto("/docs/api")
    expect(page.locator("button[data-copy]")).to_be_hidden()


def _expect_theme(page: Page, theme: str) -> None:
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    expect(page.locator("body")).to_have_css("background-color", CANVAS[theme])
