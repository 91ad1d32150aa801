"""Replays of many deliveries on pages, without JavaScript."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, submit
from tests.bed.replays import run_replays
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, logs, settle

pytestmark = pytest.mark.one_engine

ROOT, API = "/settings/webhooks", "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


def text_of(response: httpx.Response) -> str:
    assert response.status_code in (200, 422)
    main = response.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def disabled_webhook(hub: RunningHub, ada: httpx.Client, receiver: Receiver) -> dict[str, Any]:
    """A webhook that is disabled, with two skipped deliveries."""
    webhook = create_webhook(ada, receiver.url, "user:ada")
    ada.post(f"{API}/{webhook['id']}/disable")
    hub.clock.advance(60)
    for name in ("one", "two"):
        create_repo(ada, name)
    settle(hub)
    hub.clock.advance(3 * 86_400)
    return webhook


def test_enabling_offers_to_replay_skipped_deliveries(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = disabled_webhook(hub, ada, receiver)
    at = f"{ROOT}/{webhook['id']}"
    offer = submit(browser, at, f"{at}/enable").headers["location"]
    page = browser.get(offer)
    shown = text_of(page)
    assert "Enabled. 2 events were skipped while the webhook was disabled. You can replay them." in shown
    assert "2 deliveries to replay. Start Not now" in shown
    started = browser.post(f"{at}/replays", data=start_fields(page, at))
    followed = started.headers["location"]
    progress = browser.get(followed)
    assert "Running 0 of 2 sent" in text_of(progress)
    assert '<progress max="2" value="0"' in progress.text
    run_replays(hub)
    assert len(receiver.received) == 2
    assert "Done 2 of 2 sent" in text_of(browser.get(followed))
    assert "2 of 2" in text_of(browser.get(f"{at}/replays"))
    # Nothing is left to offer.
    for verb in ("disable", "enable"):
        answer = submit(browser, f"{at}/settings", f"{at}/{verb}")
    assert answer.headers["location"] == at


def start_fields(page: httpx.Response, at: str) -> dict[str, Any]:
    """The fields of the form that starts a replay."""
    form = page.text[page.text.index(f'method="post" action="{at}/replays"') :]
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', form[: form.index("</form>")])
    fields: dict[str, Any] = {name: unescape(value) for name, value in found if name != "states"}
    return {**fields, "states": [value for name, value in found if name == "states"]}


def test_running_replay_is_cancelled(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = disabled_webhook(hub, ada, receiver)
    ada.post(f"{API}/{webhook['id']}/enable")
    at = f"{ROOT}/{webhook['id']}"
    page = browser.get(f"{at}/replays?since=2000-01-01T00:00&states=skipped&states=failed&rate=1")
    at_page = browser.post(f"{at}/replays", data=start_fields(page, at)).headers["location"]
    assert "About 2 seconds left. You can close this page." in text_of(browser.get(at_page))
    answer = submit(browser, at_page, f"{at_page}/cancel")
    assert answer.headers["location"] == at_page
    assert "Cancelled 0 of 2 sent" in text_of(browser.get(at_page))
    run_replays(hub)
    assert receiver.received == []


def test_selected_deliveries_are_replayed(
    hub: RunningHub, ada: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(ada, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    for name in ("one", "two", "three"):
        create_repo(ada, name)
    settle(hub)
    page = browser.get(at)
    offered = re.findall(r'name="delivery" value="([0-9a-f]+)" form="replay-selected"', page.text)
    assert offered == [entry["id"] for entry in logs(ada, webhook)]
    hidden = Page(page).hidden(f"{at}/replays")
    nothing = browser.post(f"{at}/replays", data=hidden)
    assert nothing.headers["location"] == at
    assert "Nothing was replayed. Select the deliveries first." in text_of(browser.get(at))
    started = browser.post(f"{at}/replays", data={**hidden, "delivery": offered[:2]})
    run_replays(hub)
    assert "Done 2 of 2 sent" in text_of(browser.get(started.headers["location"]))
    assert len(receiver.received) == 5


def test_form_names_invalid_fields(ada: httpx.Client, browser: httpx.Client) -> None:
    webhook = create_webhook(ada, "https://ci.example/", "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    for query, error in (
        ("since=&states=failed", "Enter a time."),
        ("since=never&states=failed", "Give a time such as 2026-11-15T08:00:00Z."),
        ("since=2026-01-01T00:00", "Choose one or more states: failed, skipped, delivered, stored."),
        ("since=2026-01-01T00:00&states=failed&rate=999", "Choose a rate of 1 to 200 deliveries a second."),
    ):
        page = browser.get(f"{at}/replays?{query}")
        assert error in text_of(page)
        assert "Start" not in text_of(page).replace("Last replays Started", "")
    ada.post(f"{API}/{webhook['id']}/disable")
    assert "enable the webhook first" in text_of(browser.get(f"{at}/replays"))
