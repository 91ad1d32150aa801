"""@huggingface/hub signs users in, on a server and in a page: a public app that redeems its code without a
client_id. oidc-client-ts does in a page.
"""

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.bed.apps import Client, create_app
from tests.bed.people import create_organization, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import PROGRAMS, Site, decide, json_at, sign_in

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.browser


def started(site: Site, hub: RunningHub, program: str, path: str, **given: object) -> Client:
    given = {"confidential": False, "redirect_uris": (f"http://localhost{path}",), **given}
    client = create_app(hub, create_user(hub, "olga"), **given)
    scopes = " ".join(client.app.scopes)
    site.run_node(program, HUB=hub.url, CLIENT_ID=client.id, SCOPES=scopes, PAGES=str(PROGRAMS))
    return client


def signed_in(page: Page, start: str) -> None:
    page.goto(start)
    sign_in(page, "ada")
    page.get_by_role("checkbox", name="acme").check()
    decide(page, "Notebook")


def ada_of_acme(hub: RunningHub) -> User:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada, plan="team")
    return ada


def is_right(said: dict[str, Any], ada: User) -> None:
    result, whoami = said["result"], said["whoami"]
    assert result["state"] == "from here"
    assert result["scope"].split() == ["read-repos", "email", "profile", "openid"]
    assert result["userInfo"]["sub"] == ada.id
    assert [(org["preferred_username"], org["plan"]) for org in result["userInfo"]["orgs"]] == [("acme", "team")]
    assert (whoami["type"], whoami["id"], whoami["name"]) == ("user", ada.id, "ada")
    assert [org["name"] for org in whoami["orgs"]] == ["acme"]


def test_user_signs_in_on_a_server(sqlite_today: RunningHub, its_site: Site, page: Page) -> None:
    ada = ada_of_acme(sqlite_today)
    started(its_site, sqlite_today, "huggingface_hub.mjs", "/callback")
    signed_in(page, f"{its_site.url}/login")
    is_right(json_at(page, f"{its_site.url}/callback?"), ada)


def test_user_signs_in_in_a_page(sqlite_today: RunningHub, its_site: Site, page: Page) -> None:
    """Cross-origin: discovery, token, userinfo and whoami answer the page's script."""
    ada = ada_of_acme(sqlite_today)
    started(its_site, sqlite_today, "pages.mjs", "/huggingface_hub.html")
    signed_in(page, f"{its_site.url}/huggingface_hub.html")
    expect(page.locator("output")).not_to_be_empty()
    is_right(json_at(page, f"{its_site.url}/huggingface_hub.html?"), ada)


def test_oidc_client_ts_signs_in_and_out_in_a_page(sqlite_today: RunningHub, its_site: Site, page: Page) -> None:
    ada = ada_of_acme(sqlite_today)
    at = "/oidc_client_ts.html"
    after = {"post_logout_redirect_uris": (f"http://localhost{at}?signed-out",)}
    client = started(its_site, sqlite_today, "pages.mjs", at, refresh_tokens=True, **after)
    signed_in(page, f"{its_site.url}/oidc_client_ts.html")
    expect(page.locator("output")).not_to_be_empty()
    said = json_at(page, f"{its_site.url}/oidc_client_ts.html?")
    assert (said["profile"]["sub"], said["profile"]["aud"]) == (ada.id, client.id)
    assert said["profile"]["email"] == "ada@example.org"
    assert (said["renewed"], said["revoked"]) == (200, 401)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign out of this hub?")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{its_site.url}{at}?signed-out*")
    expect(page.locator("output")).not_to_be_empty()
    assert json_at(page, f"{its_site.url}{at}?signed-out") == {"user": None}
    page.goto(f"{its_site.url}{at}")
    expect(page.get_by_label("Password")).to_be_visible()
