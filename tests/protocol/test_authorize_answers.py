"""Authorization responses: the exact redirect URI, 303, state and issuer, and form_post where requested."""

from html import unescape
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest
from tests.bed.apps import Client, approve, code_for, create_app, pkce_pair, redirect_parameters
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

STATES = [
    '{"nonce":"a b","redirectUri":"https://app.example/?x=1&y=2#z"}',
    "100% +plus %20 &amp; ünïcode ☂ \U0001f512",
    "s" * 4096,
    "{}&=" * 1024,
]


def app_at(hub: RunningHub, *redirects: str, **given: object) -> Client:
    return create_app(hub, create_user(hub, "olga"), redirect_uris=redirects, **given)


@pytest.mark.parametrize(
    ("registered", "begins"),
    [
        ("https://app.example", "https://app.example/?code="),
        ("http://localhost:3000", "http://localhost:3000/?code="),
        ("https://app.example/callback", "https://app.example/callback?code="),
        ("https://app.example/cb?tenant=7&x=", "https://app.example/cb?tenant=7&x=&code="),
        ("https://app.example?tenant=7", "https://app.example/?tenant=7&code="),
        ("https://app.example/a%2Fb/~c;d", "https://app.example/a%2Fb/~c;d?code="),
        ("http://[::1]/cb", "http://[::1]/cb?code="),
        ("com.example.app:/callback", "com.example.app:/callback?code="),
        ("com.example.app:///callback", "com.example.app:///callback?code="),
        ("com.example.app://signed-in", "com.example.app://signed-in?code="),
    ],
)
def test_redirect_uri_is_used_exactly_as_registered(hub: RunningHub, registered: str, begins: str) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, registered)
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address())
        # Native apps need consent each time (O75).
        again = approve(browser, client.address(prompt="consent"))
        denied = refuse(browser, client.address(prompt="consent"))
    for response in (sent, again):
        assert response.status_code == 303
        assert response.headers["location"].startswith(begins)
    assert denied.headers["location"].startswith(begins.replace("code=", "error=access_denied&"))


def refuse(browser: httpx.Client, address: str) -> httpx.Response:
    return approve(browser, address, decision="deny")


@pytest.mark.parametrize("state", STATES, ids=["json", "odd", "long", "long and odd"])
def test_state_is_returned_unchanged_in_every_flow(hub: RunningHub, state: str) -> None:
    """Also through the sign-in page, where it is part of a URL inside a URL."""
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    address = client.address(state=state)
    with hub.client() as visitor:
        to_sign_in = visitor.get(address)
        assert to_sign_in.status_code == 303
        assert len(to_sign_in.headers["location"]) < 8000, "proxies take no more"
        form = Page(visitor.get(to_sign_in.headers["location"])).hidden()
        signed_in = visitor.post("/login", data={**form, "username": "ada", "password": "correct horse battery"})
        assert signed_in.status_code == 303
        consent = visitor.get(signed_in.headers["location"])
        action = unescape(consent.text.partition('method="post" action="')[2].partition('"')[0])
        allowed = visitor.post(action, data={**Page(consent).hidden(), "decision": "approve"})
        assert redirect_parameters(allowed)["state"] == state
        denied = refuse(visitor, client.address(state=state, prompt="consent"))
        assert redirect_parameters(denied)["state"] == state
        assert redirect_parameters(visitor.get(client.address(state=state, scope="openid jobs")))["state"] == state
    with browser_of(hub, ada) as browser:
        assert "+" not in browser.get(client.address(state=state, scope="openid")).headers["location"]


def test_every_response_names_the_issuer_and_is_not_cached(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    with browser_of(hub, ada) as browser:
        answers = [
            approve(browser, client.address()),
            browser.get(client.address()),
            refuse(browser, client.address(prompt="consent")),
            browser.get(client.address(response_type="token")),
            browser.post(client.address(response_type="token")),
        ]
    for response in answers:
        assert response.status_code == 303
        assert redirect_parameters(response)["iss"] == hub.url
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"


def test_denial_is_returned_with_a_description(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    with browser_of(hub, ada) as browser:
        answer = redirect_parameters(refuse(browser, client.address()))
        assert answer["error"] == "access_denied"
        assert answer["error_description"]
        assert "code" not in answer
        assert browser.get(client.address()).status_code == 200, "nothing was allowed by that"


def test_only_registered_redirect_uri_may_be_omitted(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(redirect_uri=None))
        again = browser.get(client.address(redirect_uri=None))
    assert sent.headers["location"].startswith("https://app.example/cb?code=")
    form = {"grant_type": "authorization_code", "code": redirect_parameters(sent)["code"]}
    elsewhere = client.post("/oauth/token", {**form, "redirect_uri": "https://app.example/other"})
    assert elsewhere.json()["error"] == "invalid_grant"
    assert client.post("/oauth/token", form).status_code == 200
    assert client.redeem(redirect_parameters(again)["code"]).status_code == 200, "sending it is accepted"


def test_redirect_uri_must_be_repeated_with_the_code(hub: RunningHub) -> None:
    """RFC 6749, section 4.1.3."""
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    codes = [code_for(client, ada), code_for(client, ada)]
    for code in codes:
        for said in ({}, {"redirect_uri": ""}):
            refused = client.post("/oauth/token", {"grant_type": "authorization_code", "code": code, **said})
            assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
        assert client.redeem(code).status_code == 200


def test_redirect_uri_is_required_if_several_are_registered(hub: RunningHub) -> None:
    client = app_at(hub, "https://app.example/cb", "https://app.example/other")
    with hub.client() as visitor:
        assert visitor.get(client.address(redirect_uri=None)).status_code == 400


def test_hosted_app_may_use_any_path_of_its_origin(hub: RunningHub) -> None:
    """Existing clients append `?_target_url=` to the registered URI."""
    ada = create_user(hub, "ada")
    client = app_at(hub, "https://space.example/oauth/callback", redirect_match="origin")
    target = "https://space.example/login/callback?_target_url=%2Fnext"
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(redirect_uri=target))
        assert sent.headers["location"].startswith(f"{target}&code=")
        for other in ("https://space.example.evil/x", "http://space.example/x", "https://space.example:8443/x"):
            assert browser.get(client.address(redirect_uri=other)).status_code == 400


def form_of(response: httpx.Response) -> tuple[str, dict[str, str]]:
    assert response.status_code == 200, response.text
    assert "form-action" not in response.headers["content-security-policy"]
    action = unescape(response.text.partition('method="post" action="')[2].partition('"')[0])
    return action, Page(response).hidden()


def test_form_post_returns_the_response_in_a_form(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb?a=b")
    address = client.address(response_mode="form_post", state='"><script>')
    with browser_of(hub, ada) as browser:
        action, members = form_of(approve(browser, address))
        assert action == "https://app.example/cb?a=b"
        assert set(members) == {"code", "state", "iss"}
        assert members["state"] == '"><script>'
        assert client.redeem(members["code"]).status_code == 200
        shown = browser.get(address)
        assert form_of(shown)[1].keys() == {"code", "state", "iss"}
        assert "Continue to app.example" in shown.text
        _, members = form_of(refuse(browser, f"{address}&prompt=consent"))
        assert members["error"] == "access_denied"
        _, members = form_of(browser.get(client.address(response_mode="form_post", scope="jobs")))
        assert members["error"] == "invalid_scope"


def test_form_post_is_rejected_for_native_apps(hub: RunningHub) -> None:
    client = app_at(hub, "com.example.app:/cb")
    with hub.client() as visitor:
        answer = redirect_parameters(visitor.get(client.address(response_mode="form_post")))
    assert answer["error"] == "invalid_request"


def test_authorization_request_may_be_posted(hub: RunningHub) -> None:
    """OpenID Connect Core, section 3.1.2.1. A cross-site POST carries no cookie."""
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    form = dict(parse_qsl(client.address().partition("?")[2]))
    with browser_of(hub, ada) as browser:
        for site in ("cross-site", "same-site"):
            sent = browser.post("/oauth/authorize", data=form, headers={"sec-fetch-site": site})
            assert sent.status_code == 303
            assert browser.get(sent.headers["location"]).status_code == 200
        approve(browser, sent.headers["location"], scopes=list(client.app.scopes))
        assert "code" in redirect_parameters(browser.post("/oauth/authorize", data=form))
    with hub.client() as visitor:
        sent = visitor.post("/oauth/authorize", data=form)
        assert sent.status_code == 303
        assert sent.headers["location"].startswith("/login?next=")
        assert (
            redirect_parameters(visitor.post("/oauth/authorize", data={**form, "scope": "jobs"}))["error"]
            == "invalid_scope"
        )


def test_bare_post_grants_nothing_new(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    decision = {"decision": "approve", "scopes": list(client.app.scopes)}
    with browser_of(hub, ada) as browser:
        assert "wants to use your account" in browser.post(client.address()).text, "a first request may be a POST"
        assert browser.post(client.address(), data=decision).status_code == 403
        assert browser.get(client.address()).status_code == 200, "nothing was allowed by that"
        approve(browser, client.address(), scopes=["read-repos"])
        assert "code" in redirect_parameters(browser.post(client.address()))
        assert "code" in redirect_parameters(browser.post(client.address(), data=decision))
        assert "code" in redirect_parameters(browser.post(client.address(), json={"anything": 1}))


def test_code_is_bound_to_its_request(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb", "https://app.example/other")
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
    other = client.redeem(code, code_verifier=verifier, redirect_uri="https://app.example/other")
    assert other.json()["error"] == "invalid_grant"
    assert client.redeem(code, code_verifier=verifier).status_code == 200


def test_unknown_parameters_are_ignored(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), app_at(hub, "https://app.example/cb")
    more = urlencode({"ui_locales": "de", "display": "page", "acr_values": "1", "junk": "y"})
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(approve(browser, f"{client.address()}&{more}&audience=a&audience=b"))


def test_malformed_packed_request_is_rejected(hub: RunningHub) -> None:
    with hub.client() as visitor:
        for packed in ("", "x", "AAAA", "eJwDAAAAAAE", "é"):
            assert visitor.get("/oauth/authorize", params={"_packed": packed}).status_code == 400
