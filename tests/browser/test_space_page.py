"""The page of a Space's app in a real Chromium: state and log are live."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.bed.engines import SqliteEngine
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import NAME, append_log, create_space, run_spaces_hub, set_stage

from hubgate.server.spaces.logs_store import RUN
from hubgate.server.spaces.model import Stage

pytestmark = pytest.mark.browser


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(SqliteEngine(sqlite_template, tmp_path), tmp_path) as started:
        yield started


def test_state_and_log_are_live(hub: RunningHub, browser: Browser) -> None:
    user = create_user(hub, "ada")
    with api(hub, create_token(hub, user)) as ada:
        space = create_space(ada)
    set_stage(hub, space, Stage.RUNNING)
    append_log(hub, space, RUN, ["first <b>line</b>"])
    with browser_of(hub, user) as client, browser.new_context(base_url=hub.url) as context:
        context.add_cookies(
            [{"name": each.name, "value": each.value or "", "url": hub.url} for each in client.cookies.jar]
        )
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"/spaces/{NAME}/app")
        log = page.get_by_role("region", name="Log of the app")
        expect(log).to_contain_text("first <b>line</b>")
        append_log(hub, space, RUN, ["second", "third"])
        expect(log).to_contain_text("third")
        expect(log.locator("span")).to_have_count(3)
        hub.clock.advance(1)
        set_stage(hub, space, Stage.RUNTIME_ERROR, "It ended five times.")
        expect(page.locator("#space-state")).to_contain_text("It ended five times.")
        assert said == []
