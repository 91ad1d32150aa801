"""Concurrent approvals, denials and polls of one code have one outcome, on which all answers agree."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import httpx
from tests.bed import devices
from tests.bed.apps import SCOPES, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_token, create_user
from tests.bed.running_hub import RunningHub

PEOPLE, ROUNDS = 5, 3
DONE, DENIED = "/oauth/device/done", "/oauth/device/done?denied"


def outcome_of(answer: httpx.Response) -> str:
    if "location" in answer.headers:
        return "approved" if answer.headers["location"] == DONE else "denied"
    if answer.headers["content-type"].startswith("text/html"):
        assert answer.status_code == 404, answer.text
        return "too late"
    return str(answer.json().get("error", "token"))


def test_fifty_concurrent_decisions_and_polls_have_one_outcome(hub: RunningHub) -> None:
    """20 approvals and 10 denials by five people, 20 polls."""
    client = create_app(hub, refresh_tokens=True)
    users = [create_user(hub, f"user{number}") for number in range(PEOPLE)]
    with ExitStack() as stack:
        browsers = [stack.enter_context(browser_of(hub, user)) for user in users]
        for _ in range(ROUNDS):
            # Those who were too late in the last round have entered wrong codes.
            hub.clock.advance(901)
            started = devices.start(client)
            calls: list[Callable[[], httpx.Response]] = []
            for browser in browsers:
                form = Page(devices.enter(browser, started["user_code"])).hidden()
                approve = {**form, "decision": "approve", "scopes": list(SCOPES)}
                calls += [partial(browser.post, devices.VERIFY, data=approve)] * 4
                calls += [partial(browser.post, devices.VERIFY, data={**form, "decision": "deny"})] * 2
            calls += [partial(devices.poll, client, started["device_code"])] * 20
            found = Counter(map(outcome_of, run_concurrently(calls)))
            assert found.total() == 50
            # The user who decided sees that each time; all others were too late.
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


def test_revocation_during_a_poll_leaves_no_valid_token(hub: RunningHub) -> None:
    """Revoking the consent races with the poll that uses the code."""
    client, ada = create_app(hub, refresh_tokens=True), create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script:
        for _ in range(ROUNDS):
            started = devices.start(client)
            devices.approve(hub, ada, started["user_code"], " ".join(SCOPES))
            poll = partial(devices.poll, client, started["device_code"])
            revoked, *answers = run_concurrently(
                [partial(script.delete, f"/api/settings/connected-apps/{client.id}"), poll, poll]
            )
            assert revoked.is_success
            for answer in answers:
                assert outcome_of(answer) in ("token", "invalid_grant")
                if answer.status_code == 200:
                    with api(hub, answer.json()["access_token"]) as program:
                        assert program.get("/api/whoami-v2").status_code == 401
