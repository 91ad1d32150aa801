"""openid-client in Node: the whole life of its tokens, for a confidential and a public app."""

import pytest
from playwright.sync_api import Page
from tests.bed.apps import create_app
from tests.bed.people import create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import Site, decide, json_at, sign_in

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("confidential", [True, False], ids=["confidential", "public"])
def test_openid_client_signs_in_refreshes_and_revokes(
    sqlite_today: RunningHub, its_site: Site, page: Page, confidential: bool
) -> None:
    hub, ada = sqlite_today, create_user(sqlite_today, "ada")
    # Registered without a port: a native app uses any free one (RFC 8252).
    client = create_app(
        hub,
        create_user(hub, "olga"),
        redirect_uris=("http://localhost/callback",),
        confidential=confidential,
        refresh_tokens=True,
    )
    secret = client.secret or ""
    its_site.run_node(
        "openid_client.mjs",
        HUB=hub.url,
        CLIENT_ID=client.id,
        CLIENT_SECRET=secret,
        SCOPES="openid profile email read-repos",
    )
    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    decide(page, "Notebook")
    said = json_at(page, f"{its_site.url}/callback?")
    assert "error" not in said, said
    assert (said["claims"]["sub"], said["claims"]["aud"]) == (ada.id, client.id)
    assert said["claims"]["auth_time"] == hub.clock() // 1_000_000
    assert (said["userinfo"]["preferred_username"], said["userinfo"]["email"]) == ("ada", "ada@example.org")
    assert set(said["refreshed"]["scope"].split()) == {"openid", "profile"}
    assert said["afterwards"] == "OAUTH_WWW_AUTHENTICATE_CHALLENGE"
    if confidential:
        assert said["introspected"]["active"] is True
        assert said["introspected"]["client_id"] == client.id
        assert said["introspectedAfterwards"] == {"active": False}
