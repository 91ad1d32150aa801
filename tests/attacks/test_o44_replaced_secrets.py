"""O44: a leaked secret is replaced and the live tokens are revoked: no exchange with the old one leaves a token."""

from collections.abc import Callable
from functools import partial

import httpx
import pytest
from tests.bed.apps import Client
from tests.bed.concurrency import run_concurrently
from tests.bed.exchange import create_exchange_app, send_exchange
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, fill_form
from tests.bed.running_hub import RunningHub

ROUNDS, REQUESTS = 8, 8
EMAIL = "bob@example.org"


def is_live(hub: RunningHub, answer: httpx.Response) -> bool:
    """Whether an exchange got a token that works."""
    if answer.status_code != 200:
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), answer.text
        return False
    with api(hub, answer.json()["access_token"]) as app:
        return app.get("/api/whoami-v2").status_code == 200


def on_the_page(admin: httpx.Client, _: httpx.Client, settings: str) -> Callable[[], httpx.Response]:
    page = f"{settings}/secret"
    return fill_form(admin, page, page, overlapSeconds="0", endTokens="on")


def with_two_requests(_: httpx.Client, script: httpx.Client, settings: str) -> Callable[[], httpx.Response]:
    def replace() -> httpx.Response:
        assert script.post(f"/api{settings}/secret").status_code == 200
        return script.delete(f"/api{settings}/tokens")

    return replace


@pytest.mark.parametrize("replacing", [on_the_page, with_two_requests])
@pytest.mark.parametrize("quota", [None, 1000])
def test_o44_exchanges_in_flight_leave_no_live_token(
    hub: RunningHub,
    replacing: Callable[[httpx.Client, httpx.Client, str], Callable[[], httpx.Response]],
    quota: int | None,
) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with browser_of(hub, ada) as admin, api(hub, create_token(hub, ada)) as script:
        for number in range(ROUNDS):
            client: Client = create_exchange_app(hub, acme)
            settings = f"/organizations/acme/settings/applications/{client.id}"
            # With a quota, an exchange is decided in the transaction that stores the token.
            assert script.patch(f"/api{settings}", json={"dailyQuota": quota}).status_code == 200
            assert is_live(hub, send_exchange(client, EMAIL))
            replace, steal = replacing(admin, script, settings), partial(send_exchange, client, EMAIL)
            replaced, *stolen = run_concurrently([replace, *[steal] * REQUESTS])
            assert replaced.status_code == 200, replaced.text
            assert not [answer for answer in stolen if is_live(hub, answer)], f"round {number}"
