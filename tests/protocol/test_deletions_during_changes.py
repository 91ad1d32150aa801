"""An account or an app is deleted while a request about it is handled: the request is rejected, without a 500."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import httpx
from tests.bed import devices
from tests.bed.apps import REDIRECT, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_token, create_user, fill_form
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM

ROUNDS, REQUESTS = 12, 4
Call = Callable[[], httpx.Response]


def delete_account(hub: RunningHub, user: User) -> httpx.Response:
    hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))
    return httpx.Response(204)


def test_device_denied_while_the_account_is_deleted(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))

    def deny(browser: httpx.Client) -> Call:
        page = devices.enter(browser, devices.start(client)["user_code"])
        return partial(browser.post, devices.VERIFY, data={**Page(page).hidden(), "decision": "deny"})

    for number in range(ROUNDS):
        user = create_user(hub, f"user{number}")
        with ExitStack() as open_until_done:
            browsers = [open_until_done.enter_context(browser_of(hub, user)) for _ in range(REQUESTS)]
            denials = [deny(browser) for browser in browsers]
            _, *answers = run_concurrently([partial(delete_account, hub, user), *denials])
        # Denied before, no such code any more, or signed out.
        assert {answer.status_code for answer in answers} <= {303, 403, 404}, [answer.text for answer in answers]


def test_app_or_resource_server_created_while_the_account_is_deleted(hub: RunningHub) -> None:
    for number in range(ROUNDS):
        user = create_user(hub, f"user{number}")
        with api(hub, create_token(hub, user)) as script:
            app = {"name": "Notebook", "redirectUris": [REDIRECT]}
            server = {"name": "Notes", "identifier": f"https://notes{number}.example/"}
            calls = [
                *(partial(script.post, "/api/settings/applications", json=app) for _ in range(REQUESTS)),
                *(partial(script.post, "/api/settings/resources", json=server) for _ in range(REQUESTS)),
            ]
            _, *answers = run_concurrently([partial(delete_account, hub, user), *calls])
        assert {answer.status_code for answer in answers} <= {201, 401, 404, 422}, [answer.text for answer in answers]


def test_operator_is_asked_while_the_app_is_deleted(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    with api(hub, create_token(hub, olga)) as script, browser_of(hub, olga) as browser:
        for _ in range(ROUNDS):
            hub.clock.advance(3600)
            page = f"/settings/applications/{create_app(hub, olga).id}"
            ask = fill_form(browser, f"{page}/ask/scope", wanted="read-metrics", reason="Charts")
            _, answer = run_concurrently([partial(script.delete, f"/api{page}"), ask])
            assert answer.status_code in (303, 404), answer.text
