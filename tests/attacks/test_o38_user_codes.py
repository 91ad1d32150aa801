"""O38: guessing user codes is throttled by user and by address, and the throttle cannot be evaded."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
from tests.bed import devices
from tests.bed.apps import create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

UNKNOWN = "This code is unknown or has expired. Start again on the device."
LOCKED = "Too many attempts. Try again in 15 minutes."
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def guesses(count: int, first: int = 0) -> list[str]:
    """Random codes; the chance that one of them exists is one in a billion."""
    return [f"{LETTERS[n % 20]}{LETTERS[n // 20 % 20]}XX-ZZZZ" for n in range(first, first + count)]


def guess(browser: httpx.Client, code: str) -> int:
    return devices.enter(browser, code).status_code


def test_o38_ten_wrong_codes_lock_a_user_out(hub: RunningHub) -> None:
    ada, bob, client = create_user(hub, "ada"), create_user(hub, "bob"), create_app(hub)
    started = devices.start(client)
    with browser_of(hub, ada) as browser, browser_of(hub, ada) as phone, browser_of(hub, bob) as neighbour:
        asked = devices.enter(phone, started["user_code"])
        assert [guess(browser, code) for code in guesses(10)] == [404] * 10
        locked = devices.enter(browser, started["user_code"])
        assert (locked.status_code, locked.headers["retry-after"]) == (429, "900")
        assert LOCKED in locked.text
        assert 'name="user_code"' in locked.text, "said on the form itself"
        for decision in ("approve", "deny"):
            assert devices.decide(phone, asked, decision).status_code == 429, "in every browser, at every step"
        assert devices.poll(client, started["device_code"]).json()["error"] == "authorization_pending"
        assert guess(neighbour, started["user_code"]) == 200, "it is the user who guessed, not the address, so far"
        hub.clock.advance(899)
        assert guess(browser, started["user_code"]) == 429
    hub.clock.advance(1)
    with browser_of(hub, ada) as browser:
        assert guess(browser, devices.start(client)["user_code"]) == 200


def test_o38_right_codes_do_not_reset_the_count_of_wrong_ones(hub: RunningHub) -> None:
    """A right code is not counted, and resets nothing."""
    client = create_app(hub)
    own = devices.start(client)["user_code"]
    with browser_of(hub, create_user(hub, "mallory")) as browser:
        for code in guesses(10):
            assert guess(browser, code) == 404
            assert guess(browser, own) in (200, 429)
        assert guess(browser, guesses(1, 10)[0]) == 429


def test_o38_decisions_do_not_reset_the_count_of_wrong_codes(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "mallory")) as browser:
        for number in range(9):
            assert guess(browser, guesses(1, number)[0]) == 404
            asked = devices.enter(browser, devices.start(client)["user_code"])
            assert devices.decide(browser, asked, "deny").status_code == 303
        assert guess(browser, guesses(1, 9)[0]) == 404
        assert guess(browser, guesses(1, 10)[0]) == 429


def test_o38_concurrent_guesses_do_not_pass_the_limit(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with ExitStack() as stack:
        browsers = [stack.enter_context(browser_of(hub, ada)) for _ in range(20)]
        hidden = [Page(browser.get("/oauth/device")).hidden() for browser in browsers]
        calls = [
            partial(browser.post, devices.VERIFY, data={**fields, "user_code": code})
            for browser, fields, code in zip(browsers, hidden, guesses(20), strict=True)
        ]
        assert sorted(answer.status_code for answer in run_concurrently(calls)) == [404] * 10 + [429] * 10


def test_o38_right_codes_are_never_throttled(hub: RunningHub) -> None:
    code = devices.start(create_app(hub))["user_code"]
    with browser_of(hub, create_user(hub, "ada")) as browser:
        spelled = [
            code,
            code.lower(),
            code.replace("-", ""),
            f" {code.replace('-', ' ')} ",
            code.replace("-", "\u2013"),
        ]
        assert [guess(browser, spelling) for spelling in spelled * 3] == [200] * 15


def test_o38_malformed_code_does_not_count_as_a_guess(hub: RunningHub) -> None:
    """Nobody is locked out for submitting an incomplete code."""
    code = devices.start(create_app(hub))["user_code"]
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for typed in ("", "BCDF", "AEIO-UYAE", "1234-5678", "\uff22CDF-GHJK", "x" * 5_000, "BCDF-GHJK-LMNP") * 2:
            answer = devices.enter(browser, typed)
            assert (answer.status_code, UNKNOWN in answer.text) == (404, True), typed
        assert guess(browser, code) == 200


def test_o38_address_is_locked_for_every_user(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, trusted_proxies="127.0.0.1/32")
    with run_hub(settings) as hub, ExitStack() as stack:
        code = devices.start(create_app(hub))["user_code"]
        there = {"x-forwarded-for": "203.0.113.9"}
        for number in range(5):
            browser = stack.enter_context(browser_of(hub, create_user(hub, f"mallory{number}")))
            browser.headers.update(there)
            assert [guess(browser, wrong) for wrong in guesses(10, 10 * number)] == [404] * 10
        ada = stack.enter_context(browser_of(hub, create_user(hub, "ada")))
        ada.headers.update(there)
        for _ in range(12):
            assert guess(ada, code) == 429
        ada.headers["x-forwarded-for"] = "203.0.113.10"
        assert guess(ada, code) == 200, "what others did there has locked her out nowhere else"
