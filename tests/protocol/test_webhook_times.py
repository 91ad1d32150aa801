"""The time of an event and the time of its delivery, which are hours apart after an outage."""

import re
from collections.abc import Iterator

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, api, browser_of, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import settle

pytestmark = pytest.mark.one_engine

THREE_HOURS = 3 * 3600


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path)) as started:
        yield started


def times_on(page: httpx.Response) -> dict[str, str]:
    """The times in the facts at its top."""
    assert page.status_code == 200
    found = re.findall(r'<dt class="muted">(\w+)</dt><dd><time datetime="([^"]+)"', page.text)
    return dict(found)


def pressed(browser: httpx.Client, page: str, action: str) -> httpx.Response:
    """The page that the button leads to."""
    done = browser.post(action, data=Page(browser.get(page)).hidden(action))
    assert done.status_code == 303, done.text
    return browser.get(done.headers["location"])


def test_delivery_shows_when_its_event_happened(hub: RunningHub) -> None:
    user = create_user(hub, "ada")
    with api(hub, create_token(hub, user)) as program, browser_of(hub, user) as browser:
        asked = {"pull": True, "watched": [{"type": "user", "name": "ada"}]}
        webhook = program.post("/api/settings/webhooks", json=asked).json()["webhook"]
        create_repo(program, "tiny")
        (event,) = program.get("/api/models/ada/tiny/events").json()
        hub.clock.advance(THREE_HOURS)
        settle(hub)
        (log,) = program.get(f"/api/settings/webhooks/{webhook['id']}/logs").json()
        assert log["at"] > event["createdAt"], "the API tells when it was queued"
        at = f"/settings/webhooks/{webhook['id']}"
        one = f"{at}/deliveries/{log['id']}"
        assert times_on(browser.get(one)) == {"Happened": event["createdAt"]}
        hub.clock.advance(THREE_HOURS)
        replayed = times_on(pressed(browser, one, f"{one}/replay"))
        assert list(replayed) == ["Happened", "Replayed"]
        assert replayed["Happened"] == event["createdAt"] < log["at"] < replayed["Replayed"]
        # A test has no event.
        assert list(times_on(pressed(browser, at, f"{at}/test"))) == ["Queued"]
