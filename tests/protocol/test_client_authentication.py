"""Client authentication: only failures are counted, and a valid secret is always accepted."""

import base64
from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from tests.bed.apps import Client, code_for, create_app, pkce_pair
from tests.bed.cimd_documents import URL, store_document, store_document_text
from tests.bed.concurrency import run_concurrently
from tests.bed.people import create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

LIMIT = 100


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"))


def ask(hub: RunningHub, client_id: str, secret: str) -> httpx.Response:
    return httpx.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, auth=(client_id, secret), timeout=60)


def test_valid_secret_is_accepted_however_many_requests_are_concurrent(hub: RunningHub, client: Client) -> None:
    with ExitStack() as stack:
        # Each has its own connections: threads that share a pool would wait for its lock.
        apps = [stack.enter_context(hub.client(auth=client.basic)) for _ in range(LIMIT + 50)]
        for _ in range(2):
            answers = run_concurrently([partial(app.post, "/oauth/introspect", data={"token": "x"}) for app in apps])
            assert {answer.status_code for answer in answers} == {200}


def test_guesses_are_throttled_while_the_app_continues(hub: RunningHub, client: Client) -> None:
    with hub.client() as guesser:
        for number in range(LIMIT):
            answer = guesser.post("/oauth/introspect", data={"token": "x"}, auth=(client.id, f"hfcs_{number}"))
            assert answer.status_code == 401, number
        refused = guesser.post("/oauth/introspect", data={"token": "x"}, auth=(client.id, "hfcs_one more"))
        assert (refused.status_code, refused.json()["error"]) == (429, "temporarily_unavailable")
        assert int(refused.headers["retry-after"]) == 15 * 60
        alone = guesser.post("/oauth/introspect", data={"token": "x", "client_id": client.id})
        assert alone.status_code == 429, "an app with a secret by its id alone is a failure too"
    assert ask(hub, *client.basic).status_code == 200
    other = create_app(hub, create_user(hub, "ada"))
    assert ask(hub, other.id, "hfcs_wrong").status_code == 401, "another app has a count of its own"
    hub.clock.advance(15 * 60)
    assert ask(hub, client.id, "hfcs_wrong").status_code == 401


@pytest.mark.parametrize("pair", ["a\0b:hfcs_x", "a%00b:hfcs_x", ":hfcs_x", "a:", "\ufffd:x", f"{'a' * 3000}:x"])
def test_invalid_client_ids_are_rejected(hub: RunningHub, pair: str) -> None:
    header = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    refused = httpx.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, headers=header)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


def test_error_says_whether_a_secret_was_sent(hub: RunningHub, client: Client) -> None:
    def description(**fields: str) -> str:
        with hub.client() as http:
            refused = http.post("/oauth/introspect", data={"token": "x", **fields})
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
        text: str = refused.json()["error_description"]
        return text

    missing = "Unknown client ID, or the app has a secret and none was sent."
    assert description(client_id=client.id) == missing
    assert description(client_id="unknown") == missing, "the answer does not tell which apps exist"
    wrong = "Unknown client ID or wrong secret."
    assert description(client_id=client.id, client_secret="hfcs_wrong") == wrong
    assert description(client_id="unknown", client_secret="hfcs_wrong") == wrong


def test_app_with_an_invalid_document_is_not_authenticated(hub: RunningHub) -> None:
    """RFC 6749, section 5.2: 401, at every endpoint an app calls."""
    for url in ("https://notes.example/no-such", "https://notes.example/a/../b", "https://10.0.0.1/x"):
        form = {"client_id": url, "grant_type": "refresh_token", "refresh_token": "x", "token": "x"}
        for path in ("/oauth/token", "/oauth/revoke", "/oauth/introspect"):
            refused = httpx.post(hub.url + path, data=form)
            assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client"), (path, url)
            assert "document" in refused.json()["error_description"]
            assert "www-authenticate" not in refused.headers


def test_code_cannot_be_redeemed_after_the_document_became_invalid(hub: RunningHub) -> None:
    client, ada = store_document(hub), create_user(hub, "ada")
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, scope="openid", code_challenge=challenge, code_challenge_method="S256")
    store_document_text(hub, URL, "{}")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.app.redirect_uris[0]}
    refused = httpx.post(f"{hub.url}/oauth/token", data={**form, "code_verifier": verifier})
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
