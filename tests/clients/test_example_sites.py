"""Examples with pages: a user signs in to each in a real browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.bed.apps import create_app
from tests.bed.clock import FrozenClock
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.sites import decide, sign_in
from tests.clients.examples import EXAMPLES, new_site, python, running

from hubgate.server.clock import system_clock

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def lenient(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """A hub for development: it fetches metadata documents from this machine."""
    folder = tmp_path_factory.mktemp("lenient")
    given = {"egress_allow": "127.0.0.0/8,::1/128", "cimd_allow_http_loopback": "true"}
    settings = settings_for(SqliteEngine(sqlite_template, folder).fresh_url(), folder, **given)
    # Libraries compare the times in an ID token with their own clock.
    hub = RunningHub(settings, FrozenClock(system_clock()))
    hub.start()
    try:
        create_user(hub, "ada")
        yield hub
    finally:
        hub.stop()


def test_fastapi_app_signs_users_in_and_out(lenient: RunningHub, tmp_path: Path, page: Page) -> None:
    hub, (port, url) = lenient, new_site()
    scopes = ("openid", "profile", "email")
    client = create_app(hub, None, redirect_uris=(f"{url}/callback",), scopes=scopes, require_pkce=True)
    command = python("authlib", "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", str(port), "fastapi_sign_in:app")
    given = {"HUB": hub.url, "CLIENT_ID": client.id, "CLIENT_SECRET": client.secret or "", "SESSION_SECRET": "s" * 32}
    with running(command, tmp_path, port, **given):
        page.goto(url)
        page.get_by_role("link", name="Sign in").click()
        sign_in(page, "ada")
        decide(page, "Notebook")
        expect(page.get_by_role("heading")).to_have_text("Hello ada")
        assert page.url == f"{url}/"
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        page.goto(f"{url}/callback?code=x&state=forged")
        expect(page.locator("body")).to_contain_text("State not equal")


def test_single_page_app_signs_in_and_lists_models(lenient: RunningHub, tmp_path: Path, page: Page) -> None:
    hub, (port, url) = lenient, new_site()
    with api(hub, create_token(hub, create_user(hub, "grace"))) as grace:
        create_repo(grace, "secret-plan", private=True)
    scopes = ("openid", "profile", "read-repos")
    client = create_app(hub, None, redirect_uris=(f"{url}/",), scopes=scopes, confidential=False)
    folder = shutil.copytree(EXAMPLES / "spa", tmp_path / "spa")
    settings = (folder / "settings.js").read_text()
    changed = settings.replace("http://127.0.0.1:8000", hub.url).replace('"CLIENT_ID"', f'"{client.id}"')
    (folder / "settings.js").write_text(changed)
    server = python("", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(port))
    with running(server, tmp_path, port):
        page.goto(f"{url}/")
        page.get_by_role("button", name="Sign in").click()
        sign_in(page, "grace")
        decide(page, "Notebook", "Deny")
        expect(page.get_by_role("status")).to_have_text("The user denied the request.")
        page.get_by_role("button", name="Sign in").click()
        decide(page, "Notebook")
        expect(page.get_by_role("status")).to_have_text("Newest models of grace")
        expect(page.get_by_role("listitem")).to_have_text("grace/secret-plan")
        assert page.url == f"{url}/", "the code is not in the address"
        page.goto(f"{url}/?code=x&state=forged")
        expect(page.get_by_role("status")).to_have_text("This sign-in was not started here. Try again.")


def test_app_without_registration_signs_users_in(lenient: RunningHub, tmp_path: Path, page: Page) -> None:
    hub, (port, url) = lenient, new_site()
    command = python("", str(EXAMPLES / "cimd_client.py"))
    with running(command, tmp_path, port, HUB=hub.url, URL=url):
        page.goto(f"{url}/login")
        sign_in(page, "ada")
        decide(page, "Field Notes")
        expect(page.locator("body")).to_have_text("Hello ada")
        again = page.goto(page.url)
        assert again is not None
        assert again.status == 400
        expect(page.locator("body")).to_contain_text("not started here")
