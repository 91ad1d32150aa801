"""`/oauth/userinfo`: organizations of the user; an invalid token is an `invalid_token`, not an `invalid_client`."""

import pytest
from tests.bed.apps import approve, create_app, redirect_parameters, tokens_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everything_but_a_valid_app_token_is_an_invalid_token(hub: RunningHub, method: str) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada)
    revoked, expired = (tokens_for(client, ada)["access_token"] for _ in range(2))
    client.post("/oauth/revoke", {"token": revoked})
    with api(hub, expired) as app:
        assert app.request(method, "/oauth/userinfo").status_code == 200
        hub.clock.advance(8 * 60 * 60)
    bearers = (revoked, expired, create_token(hub, ada), "hf_nonsense")
    headers = [{}, *({"authorization": f"Bearer {bearer}"} for bearer in bearers)]
    with hub.client() as anyone:
        for header in (*headers, {"authorization": "Basic Zm9vOmJhcg=="}, {"authorization": "Bearer"}):
            refused = anyone.request(method, "/oauth/userinfo", headers=header)
            assert refused.status_code == 401
            assert refused.json()["error"] == "invalid_token", header
            # Without a token, or with another way of authentication, no error is named (RFC 6750, section 3.1).
            challenge = refused.headers["www-authenticate"]
            is_bearer = header.get("authorization", "").startswith("Bearer")
            assert ('error="invalid_token"' in challenge) == is_bearer, (header, challenge)
            assert f'resource_metadata="{hub.url}/.well-known/oauth-protected-resource"' in challenge


def test_token_may_be_in_the_body_of_a_post(hub: RunningHub) -> None:
    """RFC 6750, section 2.2."""
    ada = create_user(hub, "ada")
    token = tokens_for(create_app(hub, ada), ada)["access_token"]
    with hub.client() as anyone:
        assert anyone.post("/oauth/userinfo", data={"access_token": token}).json()["sub"] == ada.id
        refused = anyone.post("/oauth/userinfo", data={"access_token": "hf_nonsense"})
        assert (refused.status_code, 'error="invalid_token"' in refused.headers["www-authenticate"]) == (401, True)
        for form in ({"access_token": token}, {"access_token": "hf_nonsense"}):
            twice = anyone.post("/oauth/userinfo", data=form, headers={"authorization": f"Bearer {token}"})
            assert (twice.status_code, twice.json()["error"]) == (400, "invalid_request")
        for elsewhere in ("/api/repos/create", "/api/whoami-v2"):
            assert anyone.post(elsewhere, data={"access_token": token}).status_code in (401, 405)


def test_granted_organization_has_all_fields(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, other = create_organization(hub, "acme", ada, plan="team"), create_organization(hub, "other", ada)
    client = create_app(hub, scopes=("openid", "read-billing"))
    with browser_of(hub, ada) as browser:
        code = redirect_parameters(approve(browser, client.address(), orgs=[acme.id]))["code"]
    with api(hub, client.redeem(code).json()["access_token"]) as app:
        said = app.get("/oauth/userinfo").json()
    plain = {
        org.id: {
            "sub": org.id,
            "name": org.name,
            "preferred_username": org.name,
            "picture": f"{hub.url}/avatars/{org.id}.svg",
        }
        for org in (acme, other)
    }
    more = {"roleInOrg": "admin", "plan": "team", "canPay": False, "securityRestrictions": [], "resourceGroups": []}
    assert said["orgs"] == [plain[acme.id] | more, plain[other.id]]
    assert said["organizations"] == said["orgs"]
