"""O20: an app whose secret is deleted becomes public: the old secret fails at once, the client id with PKCE works."""

import pytest
from tests.bed import lean_http
from tests.bed.apps import code_for, create_app, pkce_pair, tokens_for
from tests.bed.people import api, create_token, create_user
from tests.bed.running_hub import RunningHub


def test_o20_deleted_secret_fails_immediately_and_the_app_works_without_it(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, refresh_tokens=True)
    before = tokens_for(client, ada)
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
    with api(hub, create_token(hub, olga)) as owner:
        assert owner.delete(f"/api/settings/applications/{client.id}/secret").status_code == 200

    token = f"{hub.url}/oauth/token"
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.app.redirect_uris[0],
        "code_verifier": verifier,
    }
    in_body = {**form, "client_id": client.id, "client_secret": client.secret or ""}
    for refused in (lean_http.post(token, data=form, auth=client.basic), lean_http.post(token, data=in_body)):
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    refresh = {"grant_type": "refresh_token", "refresh_token": before["refresh_token"]}
    assert lean_http.post(token, data=refresh, auth=client.basic).json()["error"] == "invalid_client"
    for path in ("/oauth/revoke", "/oauth/introspect"):
        answer = lean_http.post(hub.url + path, data={"token": before["access_token"]}, auth=client.basic)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")

    assert lean_http.post(token, data={**form, "client_id": client.id}).status_code == 200
    assert lean_http.post(token, data={**refresh, "client_id": client.id}).status_code == 200
    with api(hub, before["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 200, "users stay signed in"


@pytest.mark.one_engine
def test_o20_a_public_app_must_use_pkce(hub: RunningHub) -> None:
    """A code that was requested without PKCE before the deletion cannot be redeemed either."""
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga)
    code = code_for(client, ada)
    with api(hub, create_token(hub, olga)) as owner:
        owner.delete(f"/api/settings/applications/{client.id}/secret")
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.app.redirect_uris[0]}
    refused = lean_http.post(f"{hub.url}/oauth/token", data={**form, "client_id": client.id})
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
