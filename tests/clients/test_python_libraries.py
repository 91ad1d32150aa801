"""requests-oauthlib and httpx-oauth sign users in and refresh their tokens."""

import pytest
from playwright.sync_api import Page
from tests.bed.apps import create_app
from tests.bed.people import create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import Site, decide, json_at, sign_in

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("library", ["requests_oauthlib", "httpx_oauth"])
def test_library_signs_in_and_refreshes(sqlite_today: RunningHub, its_site: Site, page: Page, library: str) -> None:
    hub, ada = sqlite_today, create_user(sqlite_today, "ada")
    client = create_app(hub, create_user(hub, "olga"), redirect_uris=(f"{its_site.url}/callback",), refresh_tokens=True)
    assert client.secret is not None
    variables = {"CLIENT_ID": client.id, "CLIENT_SECRET": client.secret, "SCOPES": " ".join(client.app.scopes)}
    its_site.run_python(library, f"{library}_site.py", HUB=hub.url, **variables)
    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    decide(page, "Notebook")
    said = json_at(page, f"{its_site.url}/callback?")
    assert (said["sub"], said["email"]) == (ada.id, "ada@example.org")
    assert said["refreshed"]["access_token"] != said["token"]["access_token"]
