"""The pages of a user's and of an organization's apps: a secret is shown once, a form works once."""

import re

import httpx
import pytest
from tests.attacks.test_o05_redirect_uris import BAD, GOOD
from tests.bed.apps import create_app, tokens_for
from tests.bed.dump import dump
from tests.bed.exchange import create_exchange_app
from tests.bed.organizations import entries_of
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    post,
    submit,
    without_highlighting,
)
from tests.bed.running_hub import RunningHub
from tests.protocol.test_apps_api import authenticates

pytestmark = pytest.mark.one_engine

OWN = "/settings/applications"
ACME = "/organizations/acme/settings/applications"
REDIRECT = "https://app.example/callback"
ONCE = "Copy it now. Only a fingerprint is stored, so it cannot be shown again."
AGAIN = "Already created. The secret cannot be shown again."
KEEP_IT = "Anyone with this secret can get tokens for any member of <bdi>acme</bdi>. Keep it on a server."
FORM: dict[str, str | list[str]] = {
    "name": "Notebook",
    "homepage": "https://app.example",
    "redirectUris": f"{REDIRECT}\r\n\r\n  http://localhost/cb  \r\n",
    "redirectMatch": "exact",
    "scopes": ["openid", "profile"],
    "requiredScopes": ["read-repos"],
    "tokenLifetime": "86400",
    "secret": "yes",
}

both = pytest.mark.parametrize("root", [OWN, ACME])


def secret_in(response: httpx.Response) -> str:
    (found,) = re.findall(r'value="(hfcs_[\w-]+)"', response.text)
    return str(found)


def id_in(response: httpx.Response) -> str:
    (found,) = re.findall(r'id="client-id">([^<]+)<', response.text)
    return str(found)


def stored(hub: RunningHub, token: str, root: str, client_id: str) -> dict[str, object]:
    with api(hub, token) as program:
        found: dict[str, object] = program.get(f"/api{root}/{client_id}").json()
        return found


@both
def test_new_app_page_shows_the_secret_and_a_quick_start(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        assert "Let people sign in to your site with this hub." in browser.get(root).text
        made = submit(browser, f"{root}/new", root, **FORM)
        assert made.status_code == 200
        assert made.headers["cache-control"] == "no-store"
        assert "set-cookie" not in made.headers
        assert ONCE in made.text
        assert KEEP_IT not in made.text, "the app cannot exchange tokens yet"
        client_id, secret = id_in(made), secret_in(made)
        assert authenticates(hub, client_id, secret)
        code = without_highlighting(made.text)
        for piece in (
            f'-u "{client_id}:$CLIENT_SECRET"',
            f'client_id="{client_id}"',
            f'redirect_uri: "{REDIRECT}"',
            f"{hub.url}/.well-known/openid-configuration",
        ):
            assert piece in code
        for place in (root, f"{root}/{client_id}"):
            later = browser.get(place).text
            assert "Notebook" in later
            assert secret not in later
    said = stored(hub, create_token(hub, ada), root, client_id)
    assert said["redirectUris"] == [REDIRECT, "http://localhost/cb"]
    assert said["scopes"] == ["read-repos", "profile", "openid"], "what is required is asked for"
    assert (said["requiredScopes"], said["tokenLifetime"], said["requirePkce"]) == (["read-repos"], 86400, False)
    dumped = hub.call(dump)
    assert client_id.encode() in dumped, "the dump is complete"
    assert secret[5:-4].encode() not in dumped
    assert secret not in hub.log


@both
def test_reload_creates_no_second_app(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        form = Page(browser.get(f"{root}/new")).hidden(root) | FORM
        secret = secret_in(browser.post(root, data=form))
        for _ in range(2):
            again = browser.post(root, data=form)
            assert again.status_code == 200
            assert AGAIN in again.text
            assert secret not in again.text
    with api(hub, create_token(hub, ada)) as program:
        assert len(program.get(f"/api{root}").json()) == 1


def test_public_app_is_created_without_a_secret(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        made = submit(browser, f"{OWN}/new", OWN, **{**FORM, "secret": "no"})
        assert ONCE not in made.text
        code = without_highlighting(made.text)
        assert 'token_endpoint_auth_method": "none"' in code
        assert f"-d client_id={id_in(made)}" in code
        assert "A public app" in browser.get(f"{OWN}/{id_in(made)}").text
    assert authenticates(hub, id_in(made), None)


def test_invalid_form_retains_what_was_typed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        form = Page(browser.get(f"{OWN}/new")).hidden(OWN)
        bad = {
            **FORM,
            "name": "",
            "homepage": "ftp://x",
            "redirectUris": f"{REDIRECT}\njavascript:alert(1)",
            "tokenLifetime": "x",
            "redirectMatch": "prefix",
        }
        refused = browser.post(OWN, data=form | bad)
        assert refused.status_code == 422
        assert "<title>Error: New app" in refused.text
        for field in ("name", "homepage", "redirectUris", "tokenLifetime", "redirectMatch"):
            assert f'href="#{field}"' in refused.text
            assert f'id="{field}-error"' in refused.text
        assert "javascript:alert(1)</textarea>" in refused.text
        assert 'value="read-repos" autocomplete="off" checked' in refused.text
        # The form is not used up: corrected, it works.
        assert secret_in(browser.post(OWN, data=form | FORM))


@both
def test_o5_page_rejects_unsafe_redirect_uris(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme) if root == ACME else create_app(hub, ada)
    address, token = f"{root}/{client.id}", create_token(hub, ada)
    with browser_of(hub, ada) as browser:
        hidden = Page(browser.get(address)).hidden(address)
        for bad in (uri for uri in BAD if uri.strip() == uri and uri and "\r" not in uri):
            answer = browser.post(address, data={**hidden, **FORM, "redirectUris": "\n".join([*GOOD, bad])})
            assert answer.status_code == 422, bad
            assert stored(hub, token, root, client.id)["redirectUris"] == [REDIRECT]
        assert browser.post(address, data={**hidden, **FORM, "redirectUris": "\n".join(GOOD)}).status_code == 303
        assert stored(hub, token, root, client.id)["redirectUris"] == GOOD


@both
def test_settings_are_saved(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme) if root == ACME else create_app(hub, ada)
    address = f"{root}/{client.id}"
    with browser_of(hub, ada) as browser:
        changed = {**FORM, "name": "<b>Atlas", "redirectMatch": "origin", "requirePkce": "on", "refreshTokens": "on"}
        saved = submit(browser, address, address, **changed)
        assert (saved.status_code, saved.headers["location"]) == (303, address)
        shown = browser.get(address).text
        assert "Saved &lt;b&gt;Atlas." in shown
        assert "<b>Atlas" not in shown
        refused = submit(browser, address, address, **{**FORM, "name": "x" * 97})
        assert refused.status_code == 422
    said = stored(hub, create_token(hub, ada), root, client.id)
    assert (said["name"], said["redirectMatch"]) == ("<b>Atlas", "origin")
    assert (said["requirePkce"], said["refreshTokens"]) == (True, True)
    assert authenticates(hub, client.id, client.secret), "the secret stays"


def test_lifetime_set_by_the_api_is_retained_by_the_page(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada, token_lifetime=12345)
    with browser_of(hub, ada) as browser:
        shown = browser.get(f"{OWN}/{client.id}").text
        assert '<option value="12345" selected>12,345 seconds</option>' in shown


@both
def test_new_secret_has_the_overlap_that_the_owner_chooses(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_exchange_app(hub, acme) if root == ACME else create_app(hub, ada)
    address = f"{root}/{client.id}/secret"
    with browser_of(hub, ada) as browser:
        form = Page(browser.get(address)).hidden(address)
        assert browser.post(address, data={**form, "overlapSeconds": "12"}).status_code == 422
        refreshed = browser.post(address, data={**form, "overlapSeconds": str(2 * 86400)})
        assert refreshed.headers["cache-control"] == "no-store"
        assert "The old secret stays valid for 2 days." in refreshed.text
        assert (KEEP_IT in refreshed.text) is (root == ACME)
        second = secret_in(refreshed)
        again = browser.post(address, data={**form, "overlapSeconds": str(2 * 86400)})
        assert AGAIN in again.text
        assert second not in again.text
        page = browser.get(f"{root}/{client.id}").text
        assert "valid until" in page
        assert second[-4:] in page
        assert [authenticates(hub, client.id, secret) for secret in (client.secret, second)] == [True, True]
        hub.clock.advance(2 * 86400)
        assert [authenticates(hub, client.id, secret) for secret in (client.secret, second)] == [False, True]
        assert "valid until" not in browser.get(f"{root}/{client.id}").text
        third = secret_in(submit(browser, address, address, overlapSeconds="0"))
        assert [authenticates(hub, client.id, secret) for secret in (second, third)] == [False, True]


@both
def test_making_an_app_public_needs_a_confirmation_page(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme) if root == ACME else create_app(hub, ada)
    address = f"{root}/{client.id}/secret/delete"
    with browser_of(hub, ada) as browser:
        asked = browser.get(address).text
        assert "Make <bdi>Notebook</bdi> a public client</span></button>" in asked
        assert "Its secret stops working immediately." in asked
        assert ">Cancel</a>" in asked
        assert authenticates(hub, client.id, client.secret), "looking changes nothing"
        done = submit(browser, address)
        assert (done.status_code, done.headers["location"]) == (303, f"{root}/{client.id}")
        assert not authenticates(hub, client.id, client.secret)
        assert authenticates(hub, client.id, None)
        created = submit(browser, f"{root}/{client.id}/secret", f"{root}/{client.id}/secret")
        assert "The app must now authenticate with this secret." in created.text
        assert authenticates(hub, client.id, secret_in(created))
        assert not authenticates(hub, client.id, None)


@both
def test_deleting_an_app_requires_its_name(hub: RunningHub, root: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme) if root == ACME else create_app(hub, ada)
    token = tokens_for(client, bob)["access_token"]
    address = f"{root}/{client.id}/delete"
    with browser_of(hub, ada) as browser, api(hub, token) as app:
        asked = browser.get(address).text
        assert "with the approvals of 1 person." in asked
        assert "Type Notebook" in asked
        assert submit(browser, address, address, name="notebook").status_code == 422
        assert app.get("/oauth/userinfo").status_code == 200
        done = submit(browser, address, address, name=" Notebook ")
        assert (done.status_code, done.headers["location"]) == (303, root)
        assert app.get("/oauth/userinfo").status_code == 401
        assert "Deleted Notebook." in browser.get(root).text
        assert browser.get(f"{root}/{client.id}").status_code == 404


def test_owner_sees_who_uses_the_app(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    client = create_app(hub, ada)
    with browser_of(hub, ada) as browser:
        assert "People who sign in to this app appear here." in browser.get(f"{OWN}/{client.id}").text
        tokens_for(client, bob)
        page = browser.get(f"{OWN}/{client.id}").text
        assert "1 person approved this app." in page
        assert '<a href="/bob"><bdi>bob</bdi></a>' in page
        assert bob.email not in page


def test_token_exchange_limits_are_changed_on_the_page(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme)
    address = f"{ACME}/{client.id}"
    limits: dict[str, str | list[str]] = {
        "tokenDuration": str(7 * 86400),
        "allowedScopes": ["read-repos"],
        "allowedRoles": ["admin", "write"],
        "allowedNetworks": "203.0.113.0/24\n198.51.100.7",
        "dailyQuota": "50",
        "paused": "on",
    }
    with browser_of(hub, ada) as browser:
        assert f'href="{address}/exchange"' in browser.get(address).text
        address += "/exchange"
        shown = browser.get(address).text
        assert KEEP_IT not in shown
        assert "Needs the Enterprise plan." in shown
        assert f'href="{ACME}/{client.id}/ask/token-exchange"' in shown
        saved = submit(browser, address, address, **limits)
        assert (saved.status_code, saved.headers["location"]) == (303, address)
        assert "Untick “Pause token exchange”" in browser.get(address).text
        refused = submit(browser, address, address, **{**limits, "allowedNetworks": "home", "dailyQuota": "-1"})
        assert refused.status_code == 422
        assert 'id="allowedNetworks-error"' in refused.text
        assert 'value="-1"' in refused.text
    said = stored(hub, create_token(hub, ada), ACME, client.id)
    assert (said["tokenDuration"], said["dailyQuota"], said["paused"]) == (7 * 86400, 50, True)
    assert said["allowedRoles"] == ["admin", "write"]
    assert said["allowedNetworks"] == ["203.0.113.0/24", "198.51.100.7/32"]
    kinds = sorted(entry["type"] for entry in entries_of(hub, acme))
    assert kinds == ["oauth.create_app", "oauth.update_app", "org.create"]


TAILS = ("", "/secret", "/secret/delete", "/delete", "/ask/scope")


def test_strangers_and_members_cannot_see_the_pages(hub: RunningHub) -> None:
    ada, bob, eve = create_user(hub, "ada"), create_user(hub, "bob"), create_user(hub, "eve")
    acme = create_organization(hub, "acme", ada, bob="write")
    mine, ours = create_app(hub, ada), create_app(hub, organization=acme)
    addresses = [f"{OWN}/{mine.id}{tail}" for tail in TAILS]
    organizations = [
        f"{ACME}/{ours.id}{tail}" for tail in (*TAILS, "/ask/token-exchange", "/exchange", "/exchange/revoke")
    ] + [ACME, f"{ACME}/new"]
    with browser_of(hub) as nobody:
        for address in (OWN, f"{OWN}/new", *addresses, *organizations):
            answer = nobody.get(address)
            assert (answer.status_code, answer.headers["location"][:7]) == (303, "/login?")
    for stranger in (bob, eve):
        with browser_of(hub, stranger) as browser:
            assert {browser.get(address).status_code for address in addresses} == {404}
            assert {browser.get(address).status_code for address in organizations} == {403}
            for address in addresses:
                assert post(browser, address, name="Notebook").status_code == 404
            for address in organizations[:-1]:
                assert post(browser, address, name="Notebook").status_code == 403
    assert authenticates(hub, mine.id, mine.secret)
    assert authenticates(hub, ours.id, ours.secret)


def test_o35_every_form_needs_its_csrf_token(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada)
    with browser_of(hub, ada) as browser:
        for tail in TAILS:
            assert browser.post(f"{OWN}/{client.id}{tail}", data={"name": "Notebook"}).status_code == 403
        assert browser.post(OWN, data=FORM).status_code == 403
    assert authenticates(hub, client.id, client.secret)


def test_names_chosen_by_others_are_escaped(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    name = '"><script>alert(1)</script>'
    client = create_app(hub, ada, name=name)
    with browser_of(hub, ada) as browser:
        addresses = [OWN, *(f"{OWN}/{client.id}{tail}" for tail in TAILS), f"/docs/sign-in?app={client.id}"]
        for shown in map(browser.get, addresses):
            assert shown.status_code == 200
            assert "<script>alert" not in shown.text
            assert "&lt;script&gt;alert" in shown.text
