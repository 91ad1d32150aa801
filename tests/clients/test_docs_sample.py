"""The Python sample on `/docs/sign-in`, extracted from the page and run as its last lines say."""

import pytest
from playwright.sync_api import Page, expect
from tests.bed.apps import create_app
from tests.bed.people import browser_of, code_on_page, create_organization, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import Site, decide, json_at, sign_in

pytestmark = pytest.mark.browser

# What the command `uvicorn app:app` does, on the test's socket.
SERVE = """
import os, socket, uvicorn
uvicorn.Server(uvicorn.Config(app)).run(sockets=[socket.socket(fileno=int(os.environ["LISTEN_FD"]))])
"""


@pytest.mark.parametrize("confidential", [True, False], ids=["secret", "public"])
def test_sample_handles_consent_denial_and_a_start_by_another_host_name(
    sqlite_today: RunningHub, its_site: Site, page: Page, *, confidential: bool
) -> None:
    hub, ada, olga = sqlite_today, create_user(sqlite_today, "ada"), create_user(sqlite_today, "olga")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, olga, redirect_uris=(f"{its_site.url}/callback",), confidential=confidential)
    with browser_of(hub, olga) as owner:
        docs = owner.get(f"/docs/sign-in?app={client.id}").text
    code = code_on_page(docs, "snippet-python")
    port = its_site.url.rpartition(":")[2]
    told = f"uvicorn app:app --port {port}\n# Then open {its_site.url}/login\n# Use exactly this host name: cookies"
    assert told in code
    program = its_site.home / "app.py"
    program.write_text(code + SERVE)
    its_site.run_python("authlib", str(program), SESSION_SECRET="s" * 32, CLIENT_SECRET=client.secret or "")

    page.goto(f"{its_site.url}/login")
    sign_in(page, "ada")
    decide(page, "Notebook", "Deny")
    assert json_at(page, f"{its_site.url}/callback?") == {
        "error": "access_denied",
        "why": "The user denied the request.",
    }
    # The cookie belongs to 127.0.0.1, but the redirect leads to localhost.
    page.goto(f"{its_site.url.replace('localhost', '127.0.0.1')}/login")
    decide(page, "Notebook")
    assert json_at(page, f"{its_site.url}/callback?")["error"] == "mismatching_state"
    page.goto(f"{its_site.url}/login")
    said = json_at(page, f"{its_site.url}/callback?")
    assert (said["sub"], said["email"]) == (ada.id, ada.email)
    assert [org["sub"] for org in said["organizations"]] == [acme.id], "userinfo, not the ID token"
    expect(page.locator("body")).not_to_contain_text("Internal Server Error")
