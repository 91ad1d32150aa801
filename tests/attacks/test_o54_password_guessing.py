"""O54: password guessing is throttled by account and by address, and does not reveal which accounts exist."""

import statistics
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import PASSWORD, create_user, fill_form, submit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import store
from hubgate.server.accounts.limits import FAILED_SIGN_INS_FROM_ADDRESS, network_of
from hubgate.server.accounts.passwords import hash_password
from hubgate.server.resources import Hub

TOO_MANY = "Too many attempts. Try again in 15 minutes."


def guess(client: httpx.Client, username: str, password: str = "a wrong guess") -> httpx.Response:
    return submit(client, "/login", username=username, password=password)


def test_o54_ten_failures_lock_an_account_for_a_while(hub: RunningHub) -> None:
    create_user(hub, "ada")
    create_user(hub, "bob")
    with hub.client() as client:
        assert [guess(client, "ada").status_code for _ in range(10)] == [422] * 10
        locked = guess(client, "ada", PASSWORD)
        assert locked.status_code == 429
        assert locked.headers["retry-after"] == "900"
        assert TOO_MANY in locked.text
        assert 'name="password"' in locked.text, "said on the form itself"
        assert "token" not in client.cookies
        assert guess(client, "ADA", PASSWORD).status_code == 429
        assert guess(client, "ada@example.org", PASSWORD).status_code == 429, "the account, however it is named"
        assert guess(client, "bob", PASSWORD).status_code == 303
    hub.clock.advance(900)
    with hub.client() as client:
        assert guess(client, "ada", PASSWORD).status_code == 303


def test_o54_unknown_accounts_get_the_same_answer(hub: RunningHub) -> None:
    create_user(hub, "ada")
    seen = {}
    for username in ("ada", "eve", "ada@example.org", "eve@example.org"):
        with hub.client() as client:
            answers = [guess(client, username) for _ in range(12)]
        hub.clock.advance(901)
        texts = [_without_the_visitors_own(answer.text, username) for answer in answers]
        seen[username] = [(answer.status_code, text) for answer, text in zip(answers, texts, strict=True)]
        assert [answer.status_code for answer in answers] == [422] * 10 + [429] * 2
    assert seen["ada"] == seen["eve"]
    assert seen["ada@example.org"] == seen["eve@example.org"]


def _without_the_visitors_own(page: str, username: str) -> str:
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    return page.replace(csrf, "").replace(username, "")


def test_o54_unknown_accounts_take_as_long(hub: RunningHub) -> None:
    """Comparing a password takes nearly all of the time; skipped for unknown accounts, they would answer ten times
    faster. CPU time is measured, because other tests delay responses.
    """
    ada = create_user(hub, "ada")

    async def set_password(opened: Hub) -> None:
        # The tests' users have a cheap hash.
        hashed = await hash_password(PASSWORD)
        await opened.db.write(lambda tx: store.set_password(tx, ada.id, hashed))

    hub.call(set_password)
    took: dict[str, list[float]] = {"ada": [], "eve": []}
    with hub.client() as client:
        for _ in range(9):
            for username, times in took.items():
                send = fill_form(client, "/login", username=username, password="a wrong guess")
                started = time.process_time()
                assert send().status_code == 422
                times.append(time.process_time() - started)
    known, unknown = (statistics.median(times) for times in took.values())
    assert 0.4 < unknown / known < 2.5


def test_o54_concurrent_guesses_do_not_pass_the_limit(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with ExitStack() as stack:
        clients = [stack.enter_context(hub.client()) for _ in range(16)]
        guesses = [fill_form(client, "/login", username="ada", password="a wrong guess") for client in clients]
        answers = run_concurrently(guesses)
    assert sorted(answer.status_code for answer in answers) == [422] * 10 + [429] * 6


def test_o54_successful_sign_ins_are_never_throttled(hub: RunningHub) -> None:
    create_user(hub, "ada")
    for _ in range(15):
        with hub.client() as client:
            assert guess(client, "ada", PASSWORD).status_code == 303


def test_o54_many_browsers_can_sign_in_concurrently(hub: RunningHub) -> None:
    create_user(hub, "ada")
    with ExitStack() as stack:
        browsers = [stack.enter_context(hub.client()) for _ in range(30)]
        answers = run_concurrently(
            [fill_form(browser, "/login", username="ada", password=PASSWORD) for browser in browsers]
        )
    assert {answer.status_code for answer in answers} == {303}


def test_o54_locked_address_cannot_lock_more_accounts(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(engine.fresh_url(), tmp_path, trusted_proxies="127.0.0.1/32")
    with run_hub(settings) as hub, hub.client() as client:
        create_user(hub, "ada")
        client.headers["x-forwarded-for"] = "203.0.113.9"
        # Comparing a password is slow: all but ten of the hundred failures are only counted.
        hub.call(lambda opened: count_failures(opened, "203.0.113.9", 90))
        for number in range(10):
            assert guess(client, f"user{number}").status_code == 422
        locked = guess(client, "ada", PASSWORD)
        assert locked.status_code == 429
        assert TOO_MANY in locked.text
        for _ in range(12):
            assert guess(client, "ada").status_code == 429
        client.headers["x-forwarded-for"] = "203.0.113.10"
        assert guess(client, "ada", PASSWORD).status_code == 303


async def count_failures(opened: Hub, address: str, count: int) -> None:
    for _ in range(count):
        await opened.accounts.limiter.take(FAILED_SIGN_INS_FROM_ADDRESS, address)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("unknown", "unknown"),
    ],
)
def test_o54_addresses_of_one_network_count_as_one(address: str, network: str) -> None:
    assert network_of(address) == network
