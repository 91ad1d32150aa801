"""Which errors of an authorization request are sent to the app, and which are shown to the user only."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.bed.apps import Client, approve, code_for, create_app, pkce_pair, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.scopes import Risk, Scope

pytestmark = pytest.mark.one_engine


def error_sent(client: Client, **parameters: str | None) -> dict[str, str]:
    with client.hub.client() as visitor:
        answer = redirect_parameters(visitor.get(client.address(**parameters)))
    assert answer["state"] == "s t&te"
    assert answer["iss"] == client.hub.url
    assert answer["error_description"]
    return answer


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": ""}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "web_message"}, "invalid_request"),
        ({"scope": "wat"}, "invalid_scope"),
        ({"scope": "openid manage-repos"}, "invalid_scope"),
        ({"scope": "openid\tprofile"}, "invalid_scope"),
        ({"prompt": "sometimes"}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"max_age": "٣"}, "invalid_request"),
        ({"nonce": "n" * 513}, "invalid_request"),
        ({"request": "e30.e30."}, "request_not_supported"),
        ({"request_uri": "https://app.example/r"}, "request_uri_not_supported"),
        ({"registration": "{}"}, "registration_not_supported"),
        ({"id_token_hint": "not.a.token"}, "invalid_request"),
        ({"id_token_hint": "W" * 9000 + ".e30.x"}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
    ],
)
def test_errors_are_sent_to_the_app(hub: RunningHub, parameters: dict[str, str | None], error: str) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    assert error_sent(client, **parameters)["error"] == error


def test_overlong_state_is_not_echoed(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    with hub.client() as visitor:
        answer = redirect_parameters(visitor.get(client.address(state="s" * 4097)))
        assert answer["error"] == "invalid_request"
        assert "state" not in answer
        assert visitor.get(client.address(state="s" * 4096)).headers["location"].startswith("/login")
        assert visitor.get(client.address(state="s" * 17_000)).status_code == 431


def test_prompt_none_is_answered_without_a_page(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, ada) as browser:
        assert redirect_parameters(browser.get(client.address(prompt="none")))["error"] == "consent_required"
        approve(browser, client.address())
        assert "code" in redirect_parameters(browser.get(client.address(prompt="none")))
        assert redirect_parameters(browser.get(client.address(prompt="none", max_age="0")))["error"] == "login_required"
        hub.clock.advance(seconds=61)
        assert "code" in redirect_parameters(browser.get(client.address(prompt="none", max_age="61")))
        assert (
            redirect_parameters(browser.get(client.address(prompt="none", max_age="60")))["error"] == "login_required"
        )


def test_silent_request_tells_an_unapproved_app_only_that_somebody_is_signed_in(hub: RunningHub) -> None:
    """Otherwise any site could ask whether its visitor is a certain user, or recognize the visitor by the session."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    client, other = create_app(hub, create_user(hub, "olga")), create_app(hub, create_user(hub, "mia"))
    hints = [tokens_for(other, user)["id_token"] for user in (ada, bob)]
    named = [json.dumps({"id_token": {"sub": {"value": user.id}}}) for user in (ada, bob)]
    asked = {"claims": named, "id_token_hint": hints, "max_age": ["0", "60", "62"]}
    with browser_of(hub, ada) as browser:
        hub.clock.advance(seconds=61)
        for name, values in asked.items():
            answers = [redirect_parameters(browser.get(client.address(prompt="none", **{name: v}))) for v in values]
            said = {(answer["error"], answer["error_description"]) for answer in answers}
            assert len(said) == 1, said
            error, _ = said.pop()
            assert error == ("consent_required" if name == "max_age" else "login_required")


@pytest.mark.parametrize(
    ("scope", "says"),
    [
        ("reed-repos", "There is no scope reed-repos. Did you mean read-repos?"),
        ("fly away", "There is no scope fly."),
        ("manage-repos", "manage-repos is not ticked in this app's settings."),
        ("openid,profile", "Separate scopes with spaces."),
        ("openid profile,email", "Separate scopes with spaces."),
        ("openid\tprofile", "Separate scopes with spaces."),
        ("evaluate", "evaluate was not granted to this app. Request it from the operator in the app's settings."),
    ],
    ids=range(7),
)
def test_invalid_scope_is_explained(engine: Engine, tmp_path: Path, scope: str, says: str) -> None:
    extra = (Scope("evaluate", Risk.CHANGES, "Start evaluations"),)
    settings = replace(settings_for(engine.fresh_url(), tmp_path), extra_scopes=extra)
    with run_hub(settings) as hub:
        client = create_app(hub, create_user(hub, "olga"))
        sent = error_sent(client, scope=scope)
        assert (sent["error"], sent["error_description"]) == ("invalid_scope", says)


SAYABLE = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+")


def test_description_contains_only_safe_characters(hub: RunningHub) -> None:
    """RFC 6749, section 4.1.2.1. Quotes and backslashes could end a text early, direction marks could reverse it."""
    harm = '"\\\u202e<é\U0001f512\x7f'
    client = create_app(hub, create_user(hub, "olga"))
    doubled = "&" + urlencode([(harm, "1"), (harm, "2")])
    with hub.client() as visitor:
        for address in (client.address(scope=harm), client.address() + doubled):
            said = redirect_parameters(visitor.get(address))["error_description"]
            assert SAYABLE.fullmatch(said), said
            assert "?" in said
        posted = visitor.get(client.address(scope=harm, response_mode="form_post"))
        assert SAYABLE.fullmatch(Page(posted).hidden()["error_description"])
    verifier, challenge = pkce_pair()
    asked = {"code_challenge": challenge, "code_challenge_method": "S256"}
    requests = [
        {"grant_type": harm},
        {"grant_type": "refresh_token", "refresh_token": harm, "scope": harm},
        {"grant_type": "authorization_code", "code": harm, "code_verifier": verifier},
        {"grant_type": "authorization_code", harm: ["1", "2"]},
        {"grant_type": "authorization_code", "code": code_for(client, create_user(hub, "ada"), **asked), "scope": harm},
    ]
    with hub.client(auth=client.basic) as app:
        for form in requests:
            refused = app.post("/oauth/token", data=form)
            assert refused.status_code == 400, form
            assert SAYABLE.fullmatch(refused.json()["error_description"]), refused.text
        refused = app.post("/oauth/token", json={"grant_type": harm})
        assert SAYABLE.fullmatch(refused.json()["error_description"]), refused.text


def test_common_unsupported_scopes_are_ignored(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope="openid offline_access address phone"))
        body = client.redeem(redirect_parameters(sent)["code"]).json()
        assert body["scope"] == "openid"


def test_unknown_scopes_are_ignored_if_known_ones_remain(hub: RunningHub) -> None:
    """Clients for several servers send every scope they know. Without a page to show the rest, nothing is ignored."""
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope="mcp:tools openid wat"))
    body = client.redeem(redirect_parameters(sent)["code"]).json()
    assert body["scope"] == "openid"
    refused = client.post("/oauth/device", {"client_id": client.id, "scope": "openid wat"})
    assert refused.json()["error"] == "invalid_scope"


@pytest.mark.parametrize("scope", ["offline_access", "address phone", "offline_access  phone", " "])
def test_request_with_only_ignored_scopes_is_rejected(hub: RunningHub, scope: str) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    sent = error_sent(client, scope=scope)
    assert sent["error"] == "invalid_scope"
    assert (
        sent["error_description"]
        == "None of these scopes exists on this hub. Request scopes of this app, or omit scope."
    )


def test_missing_scope_means_the_apps_registered_scopes(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope=None), scopes=list(client.app.scopes))
    assert set(client.redeem(redirect_parameters(sent)["code"]).json()["scope"].split()) == set(client.app.scopes)


def test_missing_scope_of_a_document_client_means_openid_and_profile(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), store_document(hub)
    verifier, challenge = pkce_pair()
    asked = {"code_challenge": challenge, "code_challenge_method": "S256"}
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(scope=None, **asked))
        assert "read-repos" in browser.get(client.address(scope="read-repos jobs", **asked)).text
    assert client.redeem(redirect_parameters(sent)["code"], code_verifier=verifier).json()["scope"] == "openid profile"


@pytest.mark.parametrize(
    "parameters",
    [
        {"client_id": None},
        {"client_id": "nobody"},
        {"client_id": "x" * 3000},
        {"client_id": "hubgate-cli"},
        {"client_id": "https://app.example"},
        {"client_id": "https://user@app.example/cimd"},
        {"client_id": "https://127.0.0.1/cimd"},
        {"redirect_uri": "https://elsewhere.example/"},
    ],
)
def test_errors_are_shown_to_the_user_only(hub: RunningHub, parameters: dict[str, str | None]) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for response in (browser.get(client.address(**parameters)), browser.post(client.address(**parameters))):
            assert response.status_code == 400
            assert "location" not in response.headers
            assert response.headers["content-type"].startswith("text/html")
            assert response.headers["x-request-id"] in response.text


def test_unregistered_redirect_uri_is_explained(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"), name="Atlas")
    with hub.client() as visitor:
        page = visitor.get(client.address(redirect_uri="https://elsewhere.example/")).text
    assert "Sign-in stopped: Atlas asked to send you to an address it has not registered. Nothing was shared." in page
    assert "elsewhere.example" not in page.partition("<main")[2].partition("</main>")[0]


def test_apps_name_on_the_error_page_is_escaped(hub: RunningHub) -> None:
    client = store_document(hub, client_name="Bank\u202e\u200b <b>x</b> " + "y" * 100)
    with hub.client() as visitor:
        page = visitor.get(client.address(redirect_uri="https://elsewhere.example/")).text
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "<b>x" not in page
    assert "y" * 60 not in page
