"""A webhook's pages in a real Chromium: the list is live, times are local, names are suggested."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, logs, run_receiver, settle

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.browser


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as receiver:
        yield receiver


@pytest.fixture
def user(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def ada(hub: RunningHub, user: User) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, user)) as client:
        yield client


def cookies_of(client: httpx.Client, hub: RunningHub) -> list[Any]:
    return [{"name": each.name, "value": each.value, "url": hub.url} for each in client.cookies.jar]


@pytest.fixture
def page(browser: Browser, hub: RunningHub, user: User) -> Iterator[Page]:
    """A page of ada's, in another time zone. A console message fails the test."""
    with (
        browser_of(hub, user) as client,
        browser.new_context(base_url=hub.url, timezone_id="Asia/Tokyo", locale="en-GB") as context,
    ):
        context.add_cookies(cookies_of(client, hub))
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        yield page
        assert said == []


def test_list_is_live(hub: RunningHub, ada: httpx.Client, page: Page, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    address = f"/settings/webhooks/{webhook['id']}"
    page.goto(address)
    expect(page.locator("main")).to_contain_text("Deliveries appear here")
    receiver.status = 500
    create_repo(ada, "tiny")
    settle(hub)
    # Without a table, the page is loaded again.
    page.get_by_role("button", name="1 new").click()
    rows = page.locator("tr[data-seq]")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("Retrying")
    page.evaluate("window.notReloaded = true")

    receiver.status = 200
    hub.clock.advance(60)
    settle(hub)
    expect(rows.first).to_contain_text("Delivered")
    for number in range(2):
        create_commit(ada, "ada/tiny", {"a.txt": str(number).encode()})
    settle(hub)
    waiting = page.get_by_role("button", name="2 new")
    expect(waiting).to_be_visible()
    expect(rows).to_have_count(1)
    waiting.click()
    expect(rows).to_have_count(3)
    expect(waiting).to_be_hidden()
    expect(page.locator("[data-count]")).to_have_text("3 deliveries")
    expect(page.get_by_role("region", name="Deliveries")).to_be_focused()
    shown = rows.locator("a").evaluate_all("found => found.map(one => one.href.split('/').at(-1))")
    assert shown == [log["id"] for log in logs(ada, webhook)]
    assert page.evaluate("window.notReloaded")


def test_live_list_follows_the_filter(hub: RunningHub, ada: httpx.Client, page: Page, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    page.goto(f"/settings/webhooks/{webhook['id']}?scope=repo")
    create_commit(ada, "ada/tiny", {"a.txt": b"a"})
    create_repo(ada, "other")
    settle(hub)
    page.get_by_role("button", name="1 new").click()
    expect(page.locator("tr[data-seq]")).to_have_count(2)


def test_live_list_says_when_it_stops(hub: RunningHub, ada: httpx.Client, page: Page, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    page.goto(f"/settings/webhooks/{webhook['id']}")
    page.context.clear_cookies()
    expect(page.locator("main")).to_contain_text("Updates have stopped. Reload the page.")


def test_times_are_local(hub: RunningHub, ada: httpx.Client, page: Page, receiver: Receiver) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    page.clock.set_fixed_time("2026-09-21T14:15:25Z")
    page.goto(f"/settings/webhooks/{webhook['id']}")
    shown = page.locator("td.minor time").first
    expect(shown).to_have_text("23:13:20 (2 min ago)")
    expect(shown).to_have_attribute("title", "Monday, 21 September 2026 at 23:13:20 GMT+9")


def test_names_are_suggested(hub: RunningHub, user: User, ada: httpx.Client, page: Page) -> None:
    create_organization(hub, "acme", user)
    create_repo(ada, "acme/tiny")
    page.goto("/settings/webhooks/new")
    field, lines = page.get_by_label("Add a name"), page.get_by_label("What to watch")
    field.press_sequentially("acme/t")
    expect(page.locator("#watch-names option")).to_have_attribute("value", "model:acme/tiny")
    # As a browser does when an option is chosen.
    field.fill("model:acme/tiny")
    expect(lines).to_have_value("user:ada\nmodel:acme/tiny")
    expect(field).to_have_value("")
    field.fill("user:eve")
    field.press("Enter")
    expect(lines).to_have_value("user:ada\nmodel:acme/tiny\nuser:eve")
    assert page.url.endswith("/new"), "Enter does not submit the form"


def test_pages_work_without_script(
    browser: Browser, hub: RunningHub, user: User, ada: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    create_repo(ada, "tiny")
    settle(hub)
    with browser_of(hub, user) as client, browser.new_context(base_url=hub.url, java_script_enabled=False) as context:
        context.add_cookies(cookies_of(client, hub))
        page = context.new_page()
        page.goto(f"/settings/webhooks/{webhook['id']}")
        expect(page.locator("tr[data-seq]")).to_have_count(1)
        expect(page.locator("td.minor time").first).to_have_text("2026-09-21 14:13:20 UTC")
        page.get_by_placeholder("Repo name").fill("other")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("main")).to_contain_text("Nothing matches.")
        page.goto("/settings/webhooks/new")
        expect(page.get_by_label("Add a name")).to_be_hidden()
        page.get_by_label("Address of the receiver").fill("https://ci.example/hook")
        page.get_by_role("button", name="See last 7 days").click()
        expect(page.locator("main")).to_contain_text("The webhook would have received 1 event. Nothing was sent.")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("main")).to_contain_text("Events are sent from now on.")
