"""O12, O21: ending a token family also ends the tokens of concurrent refreshes, on every machine."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests.bed.apps import Client, code_for, create_app, pkce_pair, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine
from tests.bed.organizations import two_hubs
from tests.bed.people import api, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM

ROUNDS, RACERS = 10, 6
Call = Callable[[], httpx.Response]


@pytest.fixture
def hubs(engine: Engine, tmp_path: Path) -> Iterator[tuple[RunningHub, RunningHub]]:
    with two_hubs(engine, tmp_path) as pair:
        yield pair


@pytest.fixture
def ada(hubs: tuple[RunningHub, RunningHub]) -> User:
    return create_user(hubs[0], "ada")


@pytest.fixture
def client(hubs: tuple[RunningHub, RunningHub], ada: User) -> Client:
    return create_app(hubs[0], ada, refresh_tokens=True)


@pytest.fixture
def app_connections(hubs: tuple[RunningHub, RunningHub], client: Client) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """The app's connections to both machines, opened before the race."""
    with hubs[0].client(auth=client.basic) as one, hubs[1].client(auth=client.basic) as other:
        yield one, other


def refresh(door: httpx.Client, token: str) -> httpx.Response:
    return door.post("/oauth/token", data={"grant_type": "refresh_token", "refresh_token": token})


def race_refreshes(app_connections: tuple[httpx.Client, httpx.Client], token: str, ending: Call) -> httpx.Response:
    """Refresh concurrently with the call that ends the family; none of the new tokens is valid afterwards."""
    refreshes: list[Call] = [partial(refresh, app_connections[number % 2], token) for number in range(RACERS)]
    ended, *answers = run_concurrently([ending, *refreshes])
    for answer in answers:
        if answer.status_code == 200:
            body = answer.json()
            assert refresh(app_connections[0], body["refresh_token"]).json()["error"] == "invalid_grant"
            headers = {"authorization": f"Bearer {body['access_token']}"}
            assert app_connections[1].get("/oauth/userinfo", headers=headers, auth=None).status_code == 401
        else:
            assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    return ended


def test_revocation_ends_tokens_of_concurrent_refreshes(
    client: Client, ada: User, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    for _ in range(ROUNDS):
        token = tokens_for(client, ada)["refresh_token"]
        ended = race_refreshes(
            app_connections, token, partial(app_connections[0].post, "/oauth/revoke", data={"token": token})
        )
        assert ended.status_code == 200


def test_o21_reused_refresh_token_ends_tokens_of_concurrent_refreshes(
    hubs: tuple[RunningHub, RunningHub], client: Client, ada: User, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    families = []
    for _ in range(ROUNDS):
        first = tokens_for(client, ada)["refresh_token"]
        second = refresh(app_connections[0], first).json()["refresh_token"]
        families.append((first, refresh(app_connections[0], second).json()["refresh_token"]))
    for hub in hubs:
        hub.clock.advance(seconds=61)
    for stolen, latest in families:
        ended = race_refreshes(app_connections, latest, partial(refresh, app_connections[0], stolen))
        assert (ended.status_code, ended.json()["error"]) == (400, "invalid_grant")


def test_o12_replayed_code_ends_tokens_of_concurrent_refreshes(
    client: Client, ada: User, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    for _ in range(ROUNDS):
        verifier, challenge = pkce_pair()
        code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.app.redirect_uris[0],
            "code_verifier": verifier,
        }
        redeem = partial(app_connections[0].post, "/oauth/token", data=form)
        ended = race_refreshes(app_connections, redeem().json()["refresh_token"], redeem)
        assert (ended.status_code, ended.json()["error"]) == (400, "invalid_grant")


def test_revoked_consent_ends_tokens_of_concurrent_refreshes(
    hubs: tuple[RunningHub, RunningHub], client: Client, ada: User, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    with api(hubs[1], create_token(hubs[1], ada)) as script:
        revoke = partial(script.delete, f"/api/settings/connected-apps/{quote(client.id)}")
        for _ in range(ROUNDS):
            ended = race_refreshes(app_connections, tokens_for(client, ada)["refresh_token"], revoke)
            assert ended.status_code in (200, 204), ended.text


def test_revoked_consent_ends_tokens_of_concurrent_redemptions(
    hubs: tuple[RunningHub, RunningHub], client: Client, ada: User, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    with api(hubs[1], create_token(hubs[1], ada)) as script:
        revoke = partial(script.delete, f"/api/settings/connected-apps/{quote(client.id)}")
        for _ in range(ROUNDS):
            codes = [code_for(client, ada) for _ in range(RACERS)]
            form = {"grant_type": "authorization_code", "redirect_uri": client.app.redirect_uris[0]}
            calls = [
                partial(app_connections[n % 2].post, "/oauth/token", data={**form, "code": c})
                for n, c in enumerate(codes)
            ]
            for answer in run_concurrently([revoke, *calls])[1:]:
                if answer.status_code == 200:
                    headers = {"authorization": f"Bearer {answer.json()['access_token']}"}
                    assert app_connections[0].get("/oauth/userinfo", headers=headers, auth=None).status_code == 401
                else:
                    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), answer.text


def test_deleted_account_ends_tokens_of_concurrent_refreshes(
    hubs: tuple[RunningHub, RunningHub], client: Client, app_connections: tuple[httpx.Client, httpx.Client]
) -> None:
    for number in range(3):
        user = create_user(hubs[0], f"user{number}")
        token = tokens_for(client, user)["refresh_token"]

        def delete(user: User = user) -> httpx.Response:
            hubs[1].call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))
            return httpx.Response(204)

        race_refreshes(app_connections, token, delete)
