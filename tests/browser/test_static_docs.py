"""The static documentation, opened from a disk: its search needs no server."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.docs import site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("docs") / "site"
    site.build(built)
    return built


@pytest.mark.parametrize(
    ("query", "title", "file"),
    [
        ("HUBGATE_TRUSTED_PROXIES", "Settings", "guides/settings.html"),
        ("token exchange dry run", ": Dry run", "guides/token-exchange.html#dry-run"),
        ("capacity figures measured", "Capacity: Measured figures", "guides/capacity.html#measured-figures"),
    ],
)
def test_search_finds_sections(browser: Browser, folder: Path, query: str, title: str, file: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto((folder / "guides/device.html").as_uri())
        page.get_by_role("searchbox").fill(query)
        page.get_by_role("searchbox").press("Enter")
        expect(page.get_by_role("status")).to_have_text(re.compile(r"\d+ sections?"))
        found = page.locator("#results a", has_text=title).first
        expect(found).to_have_attribute("href", re.compile(re.escape(file)))
        found.click()
        assert page.url.startswith((folder / file.partition("#")[0]).as_uri())
        expect(page.locator("h1")).to_be_visible()
        assert problems == []


def test_search_shows_what_was_typed_as_text(browser: Browser, folder: Path) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto((folder / "search.html").as_uri() + "?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E+nothinglikeit")
        expect(page.get_by_role("status")).to_have_text("Nothing matches. Try fewer words.")
        page.goto((folder / "search.html").as_uri())
        expect(page.get_by_role("status")).to_contain_text("Enter words")


def test_search_says_that_it_needs_a_script(browser: Browser, folder: Path) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto((folder / "search.html").as_uri() + "?q=capacity")
        expect(page.locator("main")).to_contain_text("This search needs JavaScript.")
        page.get_by_role("link", name="index of all pages").click()
        expect(page.locator("h1")).to_have_text("Documentation")
