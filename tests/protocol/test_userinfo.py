"""`/oauth/userinfo`: what is no token of an app is refused as a token, never as a client."""

import pytest
from tests.bed.apps import make_app, tokens_for
from tests.bed.people import api, make_token, make_user
from tests.bed.running import RunningHub


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whatever_is_no_good_token_of_an_app_is_an_invalid_token(hub: RunningHub, method: str) -> None:
    ada = make_user(hub, "ada")
    client = make_app(hub, ada)
    revoked, expired = (tokens_for(client, ada)["access_token"] for _ in range(2))
    client.post("/oauth/revoke", {"token": revoked})
    with api(hub, expired) as app:
        assert app.request(method, "/oauth/userinfo").status_code == 200
        hub.clock.advance(8 * 60 * 60)
    bearers = (revoked, expired, make_token(hub, ada), "hf_nonsense")
    headers = [{}, *({"authorization": f"Bearer {bearer}"} for bearer in bearers)]
    with hub.client() as anyone:
        for header in (*headers, {"authorization": "Basic Zm9vOmJhcg=="}, {"authorization": "Bearer"}):
            refused = anyone.request(method, "/oauth/userinfo", headers=header)
            assert refused.status_code == 401
            assert refused.json()["error"] == "invalid_token", header
            assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"', header
