"""Times are in UTC without a script, and local with one, the same on all pages."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import User
from hubgate.server.web import rendering

pytestmark = pytest.mark.browser

TEMPLATES = Path(rendering.__file__).with_name("templates")


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> User:
    user = create_user(hub, "ada")
    with api(hub, create_token(hub, user)) as client:
        create_repo(client, "tiny")
    return user


@contextmanager
def page_of(browser: Browser, hub: RunningHub, user: User, **options: Any) -> Iterator[Page]:
    with (
        browser_of(hub, user) as client,
        browser.new_context(base_url=hub.url, timezone_id="Asia/Tokyo", **options) as context,
    ):
        context.add_cookies(
            [{"name": one.name, "value": one.value or "", "url": hub.url} for one in client.cookies.jar]
        )
        yield context.new_page()


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        ("2026-09-21T14:15:25Z", "23:13 (2 min ago)"),
        ("2026-09-22T17:20:00Z", "21 Sept, 23:13 (1 d ago)"),
        ("2026-12-24T14:15:25Z", "21 Sept, 23:13 (3 mo ago)"),
        ("2028-09-22T14:15:25Z", "21 Sept 2026, 23:13 (2 y ago)"),
        ("2026-09-21T14:12:25Z", "23:13 (in 55 s)"),
    ],
)
def test_home_page_shows_local_times(hub: RunningHub, ada: User, browser: Browser, now: str, shown: str) -> None:
    with page_of(browser, hub, ada) as page:
        page.clock.set_fixed_time(now)
        page.goto("/")
        for place in (".activity time", "aside time"):
            time = page.locator(place).first
            expect(time).to_have_text(shown)
            expect(time).to_have_attribute("title", "Monday, 21 September 2026 at 23:13:20 GMT+9")


def test_dates_have_the_full_time_as_title(hub: RunningHub, ada: User, browser: Browser) -> None:
    with page_of(browser, hub, ada) as page:
        page.goto("/ada")
        joined = page.locator("time").first
        expect(joined).to_have_text("21 Sept 2026")
        expect(joined).to_have_attribute("title", "Monday, 21 September 2026 at 23:13:20 GMT+9")


def test_times_are_in_utc_without_a_script(hub: RunningHub, ada: User, browser: Browser) -> None:
    with page_of(browser, hub, ada, java_script_enabled=False) as page:
        page.goto("/")
        expect(page.locator(".activity time").first).to_have_text("2026-09-21 14:13 UTC")


def test_all_templates_show_times_with_the_same_macro() -> None:
    found = {path.name for path in TEMPLATES.rglob("*.html") if re.search(r"<time\b|\.strftime", path.read_text())}
    assert found == {"form.html"}
