"""The Basic plan of the OpenID Foundation's conformance suite, and its Form Post plan: the same modules with
`response_mode=form_post`. One test for each module, named after it; docs/conformance.md lists the results.
"""

import base64
import json

import pytest
from tests.bed.apps import create_app, pkce_pair, redirect_parameters
from tests.conformance.provider import CALLBACK, NONCE, Provider, claims_of

pytestmark = pytest.mark.parametrize("op", ["query", "form_post"], indirect=True)

PROFILE = {"name", "preferred_username", "profile", "picture"}


def request_object(**claims: str) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])


def test_oidcc_server(op: Provider) -> None:
    with op.first_visit() as visit:
        first = op.tokens(visit)
        assert visit.pages == ["sign-in", "consent"]
        second = op.tokens(visit)
    assert first["access_token"] != second["access_token"]
    op.userinfo(second["access_token"])


def test_oidcc_response_type_missing(op: Provider) -> None:
    with op.visit() as visit:
        assert op.answer(op.request(visit, response_type=None))["error"] == "invalid_request"


def test_oidcc_idtoken_signature(op: Provider) -> None:
    with op.visit() as visit:
        op.tokens(visit)
    discovered = op.get("/.well-known/openid-configuration").json()
    assert discovered["id_token_signing_alg_values_supported"] == ["RS256", "ES256", "EdDSA"]


def test_oidcc_userinfo_get(op: Provider) -> None:
    with op.visit() as visit:
        op.userinfo(op.tokens(visit)["access_token"])


def test_oidcc_userinfo_post_header(op: Provider) -> None:
    with op.visit() as visit, op.hub.client() as anyone:
        headers = {"authorization": f"Bearer {op.tokens(visit)['access_token']}"}
        assert anyone.post("/oauth/userinfo", headers=headers).json()["sub"] == op.user.id


def test_oidcc_userinfo_post_body(op: Provider) -> None:
    with op.visit() as visit, op.hub.client() as anyone:
        form = {"access_token": op.tokens(visit)["access_token"]}
        assert anyone.post("/oauth/userinfo", data=form).json()["sub"] == op.user.id


def test_oidcc_ensure_request_without_nonce_succeeds_for_code_flow(op: Provider) -> None:
    with op.visit() as visit:
        assert "nonce" not in claims_of(op.tokens(visit, nonce=None)["id_token"])


def test_oidcc_scope_profile(op: Provider) -> None:
    with op.visit() as visit:
        body = op.tokens(visit, scope="openid profile")
    assert set(op.userinfo(body["access_token"])) >= PROFILE


def test_oidcc_scope_email(op: Provider) -> None:
    with op.visit() as visit:
        body = op.tokens(visit, scope="openid email")
    said = op.userinfo(body["access_token"])
    assert (said["email"], said["email_verified"]) == (op.user.email, True)
    assert "name" not in said | claims_of(body["id_token"])


def test_oidcc_scope_address(op: Provider) -> None:
    with op.visit() as visit:
        assert "address" not in op.userinfo(op.tokens(visit, scope="openid address")["access_token"])


def test_oidcc_scope_phone(op: Provider) -> None:
    with op.visit() as visit:
        assert "phone_number" not in op.userinfo(op.tokens(visit, scope="openid phone")["access_token"])


def test_oidcc_scope_all(op: Provider) -> None:
    with op.visit() as visit:
        body = op.tokens(visit, scope="openid profile email address phone")
    assert set(op.userinfo(body["access_token"])) >= {*PROFILE, "email", "email_verified"}


def test_oidcc_alternate_happy_flow(op: Provider) -> None:
    asked = dict(reversed(op.parameters(scope="email openid").items()))
    with op.visit() as visit:
        response = op.finish(visit, visit.browser.get("/oauth/authorize", params=asked))
        body = op.redeem(op.answer(response)["code"])
    assert op.userinfo(body["access_token"])["email"] == op.user.email


def test_oidcc_display_page(op: Provider) -> None:
    with op.first_visit() as visit:
        op.tokens(visit, display="page")
        assert visit.pages == ["sign-in", "consent"]


def test_oidcc_display_popup(op: Provider) -> None:
    with op.visit() as visit:
        op.tokens(visit, display="popup")


def test_oidcc_prompt_login(op: Provider) -> None:
    with op.visit() as visit:
        first = claims_of(op.tokens(visit)["id_token"])
        op.hub.clock.advance(seconds=1)
        second = claims_of(op.tokens(visit, prompt="login")["id_token"])
        assert visit.pages == ["consent", "sign-in"]
    assert second["auth_time"] > first["auth_time"]


def test_oidcc_prompt_none_not_logged_in(op: Provider) -> None:
    with op.first_visit() as visit:
        assert op.answer(op.request(visit, prompt="none"))["error"] == "login_required"


def test_oidcc_prompt_none_logged_in(op: Provider) -> None:
    with op.visit() as visit:
        first = claims_of(op.tokens(visit)["id_token"])
        second = claims_of(op.tokens(visit, prompt="none")["id_token"])
        assert visit.pages == ["consent"]
    assert (first["auth_time"], first["sub"]) == (second["auth_time"], second["sub"])


def test_oidcc_max_age_1(op: Provider) -> None:
    with op.visit() as visit:
        first = claims_of(op.tokens(visit)["id_token"])
        op.hub.clock.advance(seconds=2)
        second = claims_of(op.tokens(visit, max_age="1")["id_token"])
        assert visit.pages == ["consent", "sign-in"]
    assert second["auth_time"] > first["auth_time"]


def test_oidcc_max_age_10000(op: Provider) -> None:
    with op.visit() as visit:
        first = claims_of(op.tokens(visit, max_age="15000")["id_token"])
        op.hub.clock.advance(seconds=1)
        second = claims_of(op.tokens(visit, max_age="10000")["id_token"])
        assert visit.pages == ["consent"]
    assert (first["auth_time"], first["sub"]) == (second["auth_time"], second["sub"])


def test_oidcc_ensure_request_with_unknown_parameter_succeeds(op: Provider) -> None:
    with op.visit() as visit:
        op.tokens(visit, extra="foobar")


def test_oidcc_id_token_hint(op: Provider) -> None:
    with op.visit() as visit:
        first = op.tokens(visit)["id_token"]
        second = op.tokens(visit, prompt="none", id_token_hint=first)["id_token"]
        assert visit.pages == ["consent"]
    assert claims_of(first)["auth_time"] == claims_of(second)["auth_time"]


def test_oidcc_login_hint(op: Provider) -> None:
    with op.first_visit() as visit:
        sent = visit.browser.get("/oauth/authorize", params=op.parameters(login_hint=op.user.name))
        assert f'value="{op.user.name}"' in visit.browser.get(sent.headers["location"]).text
        op.answer(op.finish(visit, sent))


def test_oidcc_ui_locales(op: Provider) -> None:
    with op.visit() as visit:
        op.tokens(visit, ui_locales="se")


def test_oidcc_claims_locales(op: Provider) -> None:
    with op.visit() as visit:
        op.tokens(visit, claims_locales="se")


def test_oidcc_ensure_request_with_acr_values_succeeds(op: Provider) -> None:
    with op.visit() as visit:
        assert "acr" not in claims_of(op.tokens(visit, acr_values="1 2")["id_token"])


def test_oidcc_codereuse(op: Provider) -> None:
    with op.visit() as visit:
        code = op.answer(op.request(visit))["code"]
        op.redeem(code)
        again = op.client.redeem(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


def test_oidcc_codereuse_30seconds(op: Provider) -> None:
    with op.visit() as visit:
        code = op.answer(op.request(visit))["code"]
        token = op.redeem(code)["access_token"]
        op.hub.clock.advance(seconds=30)
        again = op.client.redeem(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    refused = op.get("/oauth/userinfo", headers={"authorization": f"Bearer {token}"})
    assert refused.status_code == 401, "the first token is revoked"


def test_oidcc_ensure_registered_redirect_uri(op: Provider) -> None:
    with op.visit() as visit:
        refused = op.request(visit, redirect_uri=f"{CALLBACK}/unregistered")
    assert (refused.status_code, "location" in refused.headers) == (400, False)
    assert "an address it has not registered" in refused.text


def test_oidcc_ensure_post_request_succeeds(op: Provider) -> None:
    with op.first_visit() as visit:
        sent = visit.browser.post("/oauth/authorize", data=op.parameters())
        op.redeem(op.answer(op.finish(visit, sent))["code"])
        assert visit.pages == ["sign-in", "consent"]


def test_oidcc_server_client_secret_post(op: Provider) -> None:
    with op.visit() as visit, op.hub.client() as anyone:
        code = op.answer(op.request(visit))["code"]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
        client_id, secret = op.client.basic
        body = anyone.post("/oauth/token", data={**form, "client_id": client_id, "client_secret": secret}).json()
    op.check_id_token(body["id_token"], body["access_token"], NONCE)


def test_oidcc_request_uri_unsigned_supported_correctly_or_rejected_as_unsupported(op: Provider) -> None:
    with op.visit() as visit:
        refused = op.answer(op.request(visit, request_uri="https://suite.example/request.jwt"))
    assert refused["error"] == "request_uri_not_supported"


def test_oidcc_unsigned_request_object_supported_correctly_or_rejected_as_unsupported(op: Provider) -> None:
    """State and response mode are in the object only, so the hub does not know them."""
    hidden = {"state": None, "nonce": None, "response_mode": None}
    with op.visit() as visit:
        refused = redirect_parameters(op.request(visit, request=request_object(**op.parameters()), **hidden))
    assert (refused["error"], "state" in refused) == ("request_not_supported", False)


def test_oidcc_claims_essential(op: Provider) -> None:
    with op.visit() as visit:
        body = op.tokens(visit, claims=json.dumps({"userinfo": {"name": {"essential": True}}}))
    assert op.userinfo(body["access_token"])["name"] == op.user.display_name


def test_oidcc_ensure_request_object_with_redirect_uri(op: Provider) -> None:
    with op.visit() as visit:
        other = request_object(redirect_uri=CALLBACK)
        refused = op.request(visit, request=other, redirect_uri=f"{CALLBACK}/unregistered")
    assert (refused.status_code, "location" in refused.headers) == (400, False)


def test_oidcc_refresh_token(op: Provider) -> None:
    other = create_app(op.hub, None, refresh_tokens=True)
    with op.visit() as visit:
        first = op.tokens(visit, scope="openid offline_access")
    form = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
    second = op.client.post("/oauth/token", form).json()
    claims = op.check_id_token(second["id_token"], second["access_token"], None)
    assert claims["auth_time"] == claims_of(first["id_token"])["auth_time"]
    op.userinfo(second["access_token"])
    theirs = {**form, "refresh_token": second["refresh_token"]}
    assert other.post("/oauth/token", theirs).json()["error"] == "invalid_grant"


def test_oidcc_ensure_request_with_valid_pkce_succeeds(op: Provider) -> None:
    verifier, challenge = pkce_pair()
    with op.visit() as visit:
        answer = op.answer(op.request(visit, code_challenge=challenge, code_challenge_method="S256"))
    assert op.client.redeem(answer["code"], code_verifier=verifier).status_code == 200
