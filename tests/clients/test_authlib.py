"""Authlib's Starlette client signs users in; the user acts in a real browser on the hub's pages."""

import pytest
from playwright.sync_api import Page
from tests.bed.apps import Client, create_app
from tests.bed.people import create_organization, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import Site, decide, json_at, sign_in

pytestmark = pytest.mark.browser


def started(site: Site, hub: RunningHub, pkce: str = "", **given: object) -> Client:
    client = create_app(hub, create_user(hub, "olga"), redirect_uris=(f"{site.url}/callback",), **given)
    variables = {"HUB": hub.url, "CLIENT_ID": client.id, "CLIENT_SECRET": client.secret or "", "PKCE": pkce}
    site.run_python("authlib", "authlib_site.py", SCOPES=" ".join(client.app.scopes), **variables)
    return client


def test_authlib_signs_in_without_pkce(hub_today: RunningHub, its_site: Site, page: Page) -> None:
    hub, ada = hub_today, create_user(hub_today, "ada")
    acme = create_organization(hub, "acme", ada, plan="team")
    client = started(its_site, hub)
    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    page.get_by_role("checkbox", name="acme").check()
    decide(page, "Notebook")
    said = json_at(page, f"{its_site.url}/callback?")
    claims = said["token"]["userinfo"]
    assert (claims["iss"], claims["aud"], claims["sub"]) == (hub.url, client.id, ada.id)
    assert claims["nonce"], "Authlib checked it against the one it sent"
    assert (claims["preferred_username"], claims["email"]) == ("ada", "ada@example.org")
    assert said["userinfo"]["sub"] == ada.id
    assert [org["sub"] for org in said["userinfo"]["orgs"]] == [acme.id]
    assert "refreshed" not in said
    # The second visit needs no consent.
    page.goto(f"{its_site.url}/login")
    assert json_at(page, f"{its_site.url}/callback?")["userinfo"]["sub"] == ada.id


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
def test_authlib_signs_in_with_pkce_and_refreshes(
    sqlite_today: RunningHub, its_site: Site, page: Page, algorithm: str
) -> None:
    ada, given = create_user(sqlite_today, "ada"), {"require_pkce": True, "refresh_tokens": True}
    started(its_site, sqlite_today, pkce="S256", id_token_signed_response_alg=algorithm, **given)
    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    decide(page, "Notebook")
    said = json_at(page, f"{its_site.url}/callback?")
    assert said["token"]["userinfo"]["sub"] == ada.id
    assert said["refreshed"]["access_token"] != said["token"]["access_token"]
    assert said["refreshed"]["scope"] == said["token"]["scope"]


def test_denial_reaches_the_app(sqlite_today: RunningHub, its_site: Site, page: Page) -> None:
    create_user(sqlite_today, "ada")
    started(its_site, sqlite_today)
    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    decide(page, "Notebook", "Deny")
    said = json_at(page, f"{its_site.url}/callback?")
    assert said["error"] == "access_denied"
    assert said["description"]
