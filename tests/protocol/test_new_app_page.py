"""The page of a new app: before its creation, afterwards, and when the browser sends the form again."""

import re
from html import unescape

import pytest
from tests.bed.apps import create_app
from tests.bed.people import Page, browser_of, create_organization, create_token, create_user, submit
from tests.bed.running_hub import RunningHub
from tests.protocol.test_app_pages import ACME, AGAIN, FORM, OWN, REDIRECT, both, id_in, stored

pytestmark = pytest.mark.one_engine

ADD_ONE = "People cannot sign in until you add a redirect URI"
READY = "People can sign in to"


def words(html: str) -> str:
    """The text without tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html.partition("<main")[2])).split())


@both
def test_app_without_a_redirect_uri_is_not_called_ready(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        made = submit(browser, f"{root}/new", root, **{**FORM, "redirectUris": ""})
        address = f"{root}/{id_in(made)}"
        assert ADD_ONE in words(made.text)
        assert READY not in made.text
        assert f'<a href="{address}#redirectUris">add a redirect URI</a>' in made.text
        marked = re.findall(r"<mark>(.*?)</mark>", made.text)
        assert {"https://app.example/callback", "https%3A%2F%2Fapp.example%2Fcallback"} <= set(marked)
        for place in (address, f"/docs/sign-in?app={id_in(made)}"):
            shown = browser.get(place).text
            assert (ADD_ONE in words(shown)) is (place == address)
            assert ("<mark>" in shown) is (place != address)
        assert 'id="redirectUris"' in browser.get(address).text, "where the link leads"
        submit(browser, address, address, **FORM)
        ready = submit(browser, f"{root}/new", root, **FORM).text
        for page in (browser.get(address).text, ready):
            assert "add a redirect URI" not in page
            assert "<mark>" not in page
        assert READY in ready


@both
def test_reload_shows_no_empty_form(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        form = Page(browser.get(f"{root}/new")).hidden(root) | FORM
        browser.post(root, data=form)
        again = browser.post(root, data=form).text
        assert AGAIN in again
        assert 'name="redirectUris"' not in again
        assert f'<a class="button" href="{root}">{"Apps" if root == ACME else "Apps you build"}</a>' in again


def test_form_for_a_new_app_shows_the_essential_fields(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        page = browser.get(f"{OWN}/new").text
        fields = re.findall(r'name="(name|secret|homepage|redirectUris)"', page)
        assert fields == ["name", "secret", "homepage", "redirectUris"]
        assert f'<a href="{OWN}">Cancel</a>' in page
        assert "http on localhost or 127.0.0.1 (any port; the two are not interchangeable)" in page
        assert "except openid, profile, email and those you mark as required." in page
        seen, _, hidden = page.partition('<details class="more">')
        hidden = hidden.partition("</details>")[0]
        assert re.findall(r'name="scopes" value="([^"]+)"', seen) == [
            "write-repos",
            "read-repos",
            "email",
            "profile",
            "openid",
        ]
        assert 'name="scopes" value="webhooks"' in hidden
        # A chosen option is always visible.
        bad = {**FORM, "name": "", "scopes": ["webhooks"], "requiredScopes": []}
        assert '<details class="more" open>' in submit(browser, f"{OWN}/new", OWN, **bad).text


@pytest.mark.parametrize("required", [True, False])
def test_public_apps_page_does_not_offer_to_disable_pkce(hub: RunningHub, required: bool) -> None:
    ada = create_user(hub, "ada")
    public = create_app(hub, ada, confidential=False, require_pkce=required)
    address = f"{OWN}/{public.id}"
    with browser_of(hub, ada) as browser:
        assert 'type="checkbox" name="requirePkce"' not in browser.get(address).text
        submit(browser, address, address, **FORM)
        submit(browser, f"{address}/secret", f"{address}/secret")
        assert 'type="checkbox" name="requirePkce"' in browser.get(address).text
    assert stored(hub, create_token(hub, ada), OWN, public.id)["requirePkce"] is required, "what was chosen is kept"


def test_only_fitting_code_samples_are_shown(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        for secret, fits in (("yes", False), ("no", True)):
            made = submit(browser, f"{OWN}/new", OWN, **{**FORM, "secret": secret})
            code = unescape(re.sub(r"</?(?:span|mark)\b[^>]*>", "", made.text))
            assert ("@huggingface/hub" in code) is fits
            assert (f'clientId: "{id_in(made)}"' in code) is fits
            assert f'redirect_uri: "{REDIRECT}"' in code


def test_unused_app_can_be_deleted(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada)
    with browser_of(hub, ada) as browser:
        asked = words(browser.get(f"{OWN}/{client.id}/delete").text)
        assert "This permanently deletes Notebook. Nobody has approved it yet." in asked
