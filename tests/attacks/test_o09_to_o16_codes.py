"""O9-O16: an authorization code is valid once, for a minute, for one app, with one verifier."""

import httpx
import pytest
from tests.bed.apps import Client, code_for, create_app, pkce_pair
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"))


def code_with_proof(client: Client, user: User) -> tuple[str, str]:
    verifier, challenge = pkce_pair()
    return code_for(client, user, code_challenge=challenge, code_challenge_method="S256"), verifier


def refused(response: httpx.Response) -> str:
    assert response.status_code == 400, response.text
    assert "access_token" not in response.text
    error: str = response.json()["error"]
    return error


def is_valid(hub: RunningHub, token: str) -> bool:
    with api(hub, token) as app:
        return app.get("/oauth/userinfo").status_code == 200


@pytest.mark.one_engine
def test_o9_challenge_without_verifier_is_rejected(client: Client, ada: User) -> None:
    code, verifier = code_with_proof(client, ada)
    assert refused(client.redeem(code)) == "invalid_grant"
    assert client.redeem(code, code_verifier=verifier).status_code == 200, "the refusal used nothing up"


@pytest.mark.one_engine
def test_o10_verifier_without_challenge_is_rejected(client: Client, ada: User) -> None:
    code = code_for(client, ada)
    assert refused(client.redeem(code, code_verifier=pkce_pair()[0])) == "invalid_grant"


@pytest.mark.one_engine
@pytest.mark.parametrize("verifier", ["a" * 42, "a" * 129, "ä" * 50, "a b" * 20])
def test_o11_malformed_verifier_is_rejected(client: Client, ada: User, verifier: str) -> None:
    code, _ = code_with_proof(client, ada)
    assert refused(client.redeem(code, code_verifier=verifier)) == "invalid_grant"


def test_o12_replayed_code_revokes_its_tokens(hub: RunningHub, ada: User) -> None:
    client = create_app(hub, ada, refresh_tokens=True)
    code, verifier = code_with_proof(client, ada)
    body = client.redeem(code, code_verifier=verifier).json()
    other = client.redeem(code_for(client, ada)).json()["access_token"]
    assert is_valid(hub, body["access_token"])
    assert refused(client.redeem(code, code_verifier=verifier)) == "invalid_grant"
    assert not is_valid(hub, body["access_token"])
    form = {"grant_type": "refresh_token", "refresh_token": body["refresh_token"]}
    assert refused(client.post("/oauth/token", form)) == "invalid_grant"
    assert is_valid(hub, other), "another sign-in is another family"


@pytest.mark.one_engine
def test_o13_replay_without_proof_revokes_nothing(hub: RunningHub, client: Client, ada: User) -> None:
    code, verifier = code_with_proof(client, ada)
    token = client.redeem(code, code_verifier=verifier).json()["access_token"]
    stranger = create_app(hub, ada)
    assert refused(client.redeem(code, code_verifier=pkce_pair()[0])) == "invalid_grant"
    assert refused(client.redeem(code)) == "invalid_grant"
    assert refused(stranger.redeem(code, code_verifier=verifier)) == "invalid_grant"
    assert is_valid(hub, token)


def test_o14_fifty_concurrent_redemptions_issue_one_token(client: Client, ada: User) -> None:
    code, verifier = code_with_proof(client, ada)
    answers = run_concurrently([lambda: client.redeem(code, code_verifier=verifier)] * 50)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 49


@pytest.mark.one_engine
def test_o15_code_of_another_app_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    stranger = create_app(hub, ada)
    code = code_for(client, ada)
    assert refused(stranger.redeem(code)) == "invalid_grant"
    assert client.redeem(code).status_code == 200


@pytest.mark.one_engine
def test_o16_code_expires_after_a_minute(hub: RunningHub, client: Client, ada: User) -> None:
    early, late = code_for(client, ada), code_for(client, ada)
    hub.clock.advance(seconds=59)
    assert client.redeem(early).status_code == 200
    hub.clock.advance(seconds=2)
    assert refused(client.redeem(late)) == "invalid_grant"


@pytest.mark.one_engine
def test_code_with_another_redirect_uri_is_rejected(client: Client, ada: User) -> None:
    code = code_for(client, ada)
    for uri in ("https://app.example/other", "https://app.example/callback?x=1", "http://app.example/callback"):
        assert refused(client.redeem(code, redirect_uri=uri)) == "invalid_grant"
    assert client.redeem(code).status_code == 200
