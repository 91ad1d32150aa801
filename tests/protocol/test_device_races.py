"""Approvals, denials and polls of one code at the same moment: one outcome, on which everyone agrees."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import httpx
from tests.bed import devices
from tests.bed.apps import SCOPES, make_app
from tests.bed.at_once import at_once
from tests.bed.people import Page, api, browser_of, make_token, make_user
from tests.bed.running import RunningHub

PEOPLE, ROUNDS = 5, 3
DONE, DENIED = "/oauth/device/done", "/oauth/device/done?denied"


def outcome_of(answer: httpx.Response) -> str:
    if "location" in answer.headers:
        return "approved" if answer.headers["location"] == DONE else "denied"
    if answer.headers["content-type"].startswith("text/html"):
        assert answer.status_code == 404, answer.text
        return "too late"
    return str(answer.json().get("error", "token"))


def test_fifty_at_once(hub: RunningHub) -> None:
    """20 approvals by five people, 10 denials by them, 20 polls."""
    client = make_app(hub, refresh_tokens=True)
    users = [make_user(hub, f"user{number}") for number in range(PEOPLE)]
    with ExitStack() as stack:
        browsers = [stack.enter_context(browser_of(hub, user)) for user in users]
        for _ in range(ROUNDS):
            # Who came too late last time has tried wrong codes.
            hub.clock.advance(901)
            started = devices.start(client)
            calls: list[Callable[[], httpx.Response]] = []
            for browser in browsers:
                form = Page(devices.enter(browser, started["user_code"])).hidden()
                approve = {**form, "decision": "approve", "scopes": list(SCOPES)}
                calls += [partial(browser.post, devices.VERIFY, data=approve)] * 4
                calls += [partial(browser.post, devices.VERIFY, data={**form, "decision": "deny"})] * 2
            calls += [partial(devices.poll, client, started["device_code"])] * 20
            found = Counter(map(outcome_of, at_once(calls)))
            assert found.total() == 50
            # Who decided is told so at each of their presses; everybody else came too late.
            assert min(found["approved"], found["denied"]) == 0, found
            assert found["approved"] + found["denied"] == 6, found
            assert found["too late"] == 24, found
            if found["denied"]:
                assert found["token"] == found["invalid_grant"] == 0, found
                assert outcome_of(devices.poll(client, started["device_code"])) == "access_denied"
                continue
            assert found["access_denied"] == 0, found
            if not found["token"]:
                assert found["invalid_grant"] == 0, found
                assert outcome_of(devices.poll(client, started["device_code"])) == "token"
            else:
                assert found["token"] == 1, found
            assert outcome_of(devices.poll(client, started["device_code"])) == "invalid_grant"
        connected = [client.id in browser.get("/settings/connected").text for browser in browsers]
    tokens = hub.call(lambda opened: opened.db.one("SELECT count(*) AS n FROM app_tokens"))
    consents = hub.call(lambda opened: opened.db.one("SELECT count(*) AS n FROM consents"))
    assert tokens is not None
    assert consents is not None
    assert tokens["n"] <= ROUNDS
    assert consents["n"] == sum(connected) <= ROUNDS, "who was too late has allowed nothing"


def test_revoked_while_it_polls(hub: RunningHub) -> None:
    """Taking the consent back meets the poll that would use it up: afterwards no token is good, whoever came first."""
    client, ada = make_app(hub, refresh_tokens=True), make_user(hub, "ada")
    with api(hub, make_token(hub, ada)) as script:
        for _ in range(ROUNDS):
            started = devices.start(client)
            devices.approve(hub, ada, started["user_code"], " ".join(SCOPES))
            poll = partial(devices.poll, client, started["device_code"])
            revoked, *answers = at_once(
                [partial(script.delete, f"/api/settings/connected-apps/{client.id}"), poll, poll]
            )
            assert revoked.is_success
            for answer in answers:
                assert outcome_of(answer) in ("token", "invalid_grant")
                if answer.status_code == 200:
                    with api(hub, answer.json()["access_token"]) as program:
                        assert program.get("/api/whoami-v2").status_code == 401
