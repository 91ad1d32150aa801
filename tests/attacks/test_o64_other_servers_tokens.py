"""O64: a token requested for another server (RFC 8707) is useless at this hub, and its user was shown that server."""

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import Client, approve, code_for, create_app, pkce_pair, redirect_parameters
from tests.bed.exchange import create_exchange_app, send_exchange
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

pytestmark = pytest.mark.one_engine

OTHER, SECOND = "https://mcp.example/mcp", "https://files.example/"
SAYS = "This token is for mcp.example, not for this hub."
SCOPES = ("openid", "profile", "email", "manage-repos", "webhooks")
MALFORMED = (
    "mcp.example",
    "mcp.example:8443/mcp",
    "//mcp.example/mcp",
    "/mcp",
    "x",
    "?a=b",
    "https:",
    "https://",
    "https:///mcp",
    "https:mcp.example",
    "https://mcp.example/#part",
    "https://mcp.example/#",
    "https://user@mcp.example/",
    "https://mcp.example:99999/",
    "https://mcp.example/a b",
    "https://mcp.example/\\x",
    "https://mcp.example/\r\nx: y",
    "https://mcp.exämple/",
    "https://mcp.example/%zz",
    "1https://mcp.example/",
    "https://mcp.example/" + "x" * 2000,
)


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, create_user(hub, "olga"), scopes=SCOPES, refresh_tokens=True)


def tokens(client: Client, user: User, **asked: str | None) -> dict[str, str]:
    verifier, challenge = pkce_pair()
    code = code_for(client, user, code_challenge=challenge, code_challenge_method="S256", **asked)
    answer = client.redeem(code, code_verifier=verifier)
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


def token_request(client: Client, form: dict[str, Any], *resources: str) -> httpx.Response:
    with client.hub.client(auth=client.basic) as http:
        return http.post("/oauth/token", data={**form, "resource": list(resources)})


def refresh(client: Client, token: str, *resources: str) -> httpx.Response:
    return token_request(client, {"grant_type": "refresh_token", "refresh_token": token}, *resources)


def redeem(client: Client, code: str, *resources: str) -> httpx.Response:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": client.app.redirect_uris[0]}
    return token_request(client, form, *resources)


def is_refused_everywhere(hub: RunningHub, token: str, folder: Path) -> None:
    with api(hub, token) as app:
        for method, path in (
            ("GET", "/api/whoami-v2"),
            ("GET", "/api/models/ada/tiny"),
            ("GET", "/api/models/ada/tiny/tree/main"),
            ("POST", "/api/repos/create"),
            ("GET", "/api/settings/webhooks"),
            ("GET", "/ada/tiny/resolve/main/a.txt"),
            ("HEAD", "/ada/tiny/resolve/main/a.txt"),
            ("GET", "/ada/tiny.git/info/refs?service=git-upload-pack"),
            ("GET", "/ada/tiny.git/info/refs?service=git-receive-pack"),
            ("POST", "/ada/tiny.git/info/lfs/objects/batch"),
        ):
            answer = app.request(method, path)
            assert answer.status_code == 401, (method, path, answer.text)
            challenge = answer.headers["www-authenticate"]
            assert 'error="invalid_token"' in challenge, (method, path, challenge)
            assert f'error_description="{SAYS}' in challenge, (method, path, challenge)
            if path.startswith("/api"):
                assert answer.json()["error"].startswith(SAYS), (method, path)
    with hub.client(auth=("ada", token)) as git:
        for path in ("/ada/tiny.git/info/refs?service=git-upload-pack", "/ada/tiny/resolve/main/a.txt"):
            assert git.get(path).status_code == 401, path
    place = hub.url.replace("://", f"://ada:{token}@")
    asked = ["git", "-c", "credential.helper=", "ls-remote", f"{place}/ada/tiny"]
    found = subprocess.run(asked, capture_output=True, text=True, cwd=folder, env={"GIT_TERMINAL_PROMPT": "0"})
    assert found.returncode != 0, found.stdout


@pytest.fixture
def tiny(hub: RunningHub, ada: User) -> None:
    with api(hub, create_token(hub, ada)) as script:
        create_repo(script, "tiny", private=True)
        create_commit(script, "ada/tiny", {"a.txt": b"text"})


@pytest.mark.usefixtures("tiny")
def test_o64_token_for_another_server_is_refused_at_the_hub(
    hub: RunningHub, client: Client, ada: User, tmp_path: Path
) -> None:
    found = tokens(client, ada, resource=OTHER)
    is_refused_everywhere(hub, found["access_token"], tmp_path)
    renewed = refresh(client, found["refresh_token"]).json()
    is_refused_everywhere(hub, renewed["access_token"], tmp_path)
    with api(hub, found["access_token"]) as app:
        for method in ("GET", "POST"):
            said = app.request(method, "/oauth/userinfo")
            assert (said.status_code, said.json()["preferred_username"]) == (200, "ada")


@pytest.mark.usefixtures("tiny")
def test_o64_device_token_for_another_server_is_refused_at_the_hub(
    hub: RunningHub, client: Client, ada: User, tmp_path: Path
) -> None:
    started = devices.start(client, resource=OTHER)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        assert "mcp.example" in asked.text
        devices.decide(browser, asked, "approve", scopes=list(SCOPES))
    form = {"grant_type": devices.GRANT, "device_code": started["device_code"]}
    for foreign in (SECOND, hub.url):
        assert token_request(client, form, foreign).json()["error"] == "invalid_target"
    found = token_request(client, form, OTHER).json()
    is_refused_everywhere(hub, found["access_token"], tmp_path)
    assert refresh(client, found["refresh_token"], hub.url).json()["error"] == "invalid_target"


@pytest.mark.parametrize("slash", ["", "/"])
def test_o64_resource_may_name_the_hub_itself(hub: RunningHub, client: Client, ada: User, slash: str) -> None:
    """Clients of the Model Context Protocol do so at every step."""
    own = hub.url + slash
    with browser_of(hub, ada) as browser:
        answer = redirect_parameters(approve(browser, client.address(resource=own)))
        assert "code" in redirect_parameters(browser.get(client.address())), "the same consent"
    found = redeem(client, answer["code"], own).json()
    renewed = refresh(client, found["refresh_token"], hub.url, hub.url + "/").json()
    started = devices.start(client, resource=own)
    devices.approve(hub, ada, started["user_code"], "openid profile")
    form = {"grant_type": devices.GRANT, "device_code": started["device_code"]}
    for token in (found, renewed, token_request(client, form, own).json()):
        with api(hub, token["access_token"]) as app:
            assert app.get("/api/whoami-v2").status_code == 200


def test_o64_malformed_resource_is_an_invalid_target(hub: RunningHub, client: Client, ada: User) -> None:
    refresh_token = tokens(client, ada)["refresh_token"]
    with browser_of(hub, ada) as browser:
        for resource in MALFORMED:
            for more in ((), (hub.url,), (OTHER,)):
                sent = [resource, *more]
                address = f"{client.address()}&{urlencode({'resource': sent}, doseq=True)}"
                answer = redirect_parameters(browser.get(address))
                assert answer["error"] == "invalid_target", sent
                assert (answer["state"], answer["iss"]) == ("s t&te", hub.url)
            assert client.post("/oauth/device", {"resource": resource}).json()["error"] == "invalid_target", resource
            refused = refresh(client, refresh_token, resource)
            assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target"), resource
            code = redeem(client, "hf_code_x", resource)
            assert code.status_code == 400, resource


def test_o64_hub_together_with_another_server_is_an_invalid_target(hub: RunningHub, client: Client, ada: User) -> None:
    both = [[hub.url, OTHER], [OTHER, hub.url + "/"]]
    found = tokens(client, ada, resource=OTHER)
    with browser_of(hub, ada) as browser:
        for sent in both:
            address = f"{client.address()}&{urlencode({'resource': sent}, doseq=True)}"
            assert redirect_parameters(browser.get(address))["error"] == "invalid_target"
            with hub.client(auth=client.basic) as http:
                started = http.post("/oauth/device", data={"resource": sent})
            assert (started.status_code, started.json()["error"]) == (400, "invalid_target")
            assert refresh(client, found["refresh_token"], *sent).json()["error"] == "invalid_target"


def test_o64_token_request_cannot_widen_the_resources(hub: RunningHub, client: Client, ada: User) -> None:
    """RFC 8707, section 2.2: it may name a subset of the authorized ones."""
    plain, narrow = tokens(client, ada), tokens(client, ada, resource=OTHER)
    for token, resources in (
        (plain, [OTHER]),
        (narrow, [hub.url]),
        (narrow, [SECOND]),
        (narrow, [OTHER, SECOND]),
        (narrow, [OTHER + "/"]),
    ):
        refused = refresh(client, token["refresh_token"], *resources)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target"), resources
    code = code_for(client, ada, resource=OTHER)
    for resource in (hub.url, SECOND):
        assert redeem(client, code, resource).json()["error"] == "invalid_target"
    assert redeem(client, code, OTHER).status_code == 200, "what was refused did not use the code up"


def test_o64_token_may_be_requested_for_one_of_several_servers(hub: RunningHub, client: Client, ada: User) -> None:
    address = f"{client.address()}&{urlencode({'resource': [OTHER, SECOND, OTHER]}, doseq=True)}"
    with browser_of(hub, ada) as browser:
        page = browser.get(address).text
        assert "mcp.example" in page
        assert "files.example" in page
        code = redirect_parameters(approve(browser, address))["code"]
    first = redeem(client, code, SECOND).json()
    assert about(client, first["access_token"])["aud"] == SECOND
    second = refresh(client, first["refresh_token"]).json()
    assert about(client, second["access_token"])["aud"] == [OTHER, SECOND], "narrowing one answer narrows no other"
    with api(hub, second["access_token"]) as app:
        assert app.get("/api/whoami-v2").status_code == 401


def about(client: Client, token: str) -> dict[str, Any]:
    said: dict[str, Any] = client.post("/oauth/introspect", {"token": token}).json()
    return said


def test_o64_introspection_and_revocation_accept_the_token(hub: RunningHub, client: Client, ada: User) -> None:
    found = tokens(client, ada, resource=OTHER)
    said = about(client, found["access_token"])
    assert (said["active"], said["aud"], said["client_id"]) == (True, OTHER, client.id)
    assert client.post("/oauth/revoke", {"token": found["access_token"]}).status_code == 200
    assert about(client, found["access_token"]) == {"active": False}
    with api(hub, found["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 401
    assert client.post("/oauth/revoke", {"token": found["refresh_token"]}).status_code == 200
    assert refresh(client, found["refresh_token"]).json()["error"] == "invalid_grant"


def test_o64_consent_page_names_the_other_server(hub: RunningHub, client: Client, ada: User) -> None:
    with browser_of(hub, ada) as browser:
        assert "another server" not in browser.get(client.address()).text
        page = browser.get(client.address(resource=OTHER)).text
        assert '<span class="mono">mcp.example</span>' in page
        for resource in ("urn:example:tools", f"{hub.url}/hosted/eve/tools"):
            assert f'<span class="mono">{resource}</span>' in browser.get(client.address(resource=resource)).text


def test_o64_consent_is_valid_for_the_server_that_was_shown(hub: RunningHub, client: Client, ada: User) -> None:
    def silent(**asked: str) -> str:
        answer = redirect_parameters(browser.get(client.address(prompt="none", **asked)))
        return answer.get("error", "a code")

    with browser_of(hub, ada) as browser:
        approve(browser, client.address())
        assert silent() == silent(resource=hub.url) == "a code"
        assert silent(resource=OTHER) == "consent_required"
        assert browser.get(client.address(resource=OTHER)).status_code == 200, "asked"
        approve(browser, client.address(resource=OTHER))
        assert silent(resource=OTHER) == silent() == "a code"
        assert silent(resource="https://mcp.example/other") == silent(resource=SECOND) == "consent_required"
    other = create_app(hub, None, scopes=SCOPES)
    with browser_of(hub, ada) as browser:
        approve(browser, other.address(resource=OTHER))
        assert redirect_parameters(browser.get(other.address(prompt="none")))["error"] == "consent_required"


def test_o64_consent_for_another_server_does_not_cover_the_hub(hub: RunningHub, client: Client, ada: User) -> None:
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(scope="openid"))
        approve(browser, client.address(scope="openid manage-repos", resource=OTHER))
        wide = client.address(scope="openid manage-repos", prompt="none")
        assert redirect_parameters(browser.get(wide))["error"] == "consent_required"
        assert "code" in redirect_parameters(browser.get(client.address(scope="openid", prompt="none")))


def test_o64_consent_for_another_server_does_not_extend_tokens_for_the_hub(
    hub: RunningHub, client: Client, ada: User
) -> None:
    """A revoked scope stays revoked, and no organization is granted."""
    acme = create_organization(hub, "acme", ada)
    token = tokens(client, ada)
    with api(hub, create_token(hub, ada)) as script:
        connected = f"/api/settings/connected-apps/{client.id}"
        assert script.patch(connected, json={"scopes": ["openid", "profile"]}).status_code == 200
        with browser_of(hub, ada) as browser:
            address = client.address(resource=OTHER, orgIds=acme.id)
            page = browser.get(address)
            assert "acme" not in page.text
            answer = redirect_parameters(approve(browser, address, scopes=list(SCOPES), orgs=[acme.id]))
            silent = redirect_parameters(browser.get(client.address(prompt="none")))
            assert silent["error"] == "consent_required"
        assert script.get(connected).json()["organizations"] == []
    foreign = redeem(client, answer["code"]).json()
    with api(hub, foreign["access_token"]) as app:
        assert all("roleInOrg" not in one for one in app.get("/oauth/userinfo").json()["orgs"])
    for held in (token, refresh(client, token["refresh_token"]).json()):
        assert about(client, held["access_token"])["scope"] == "profile openid"
        with api(hub, held["access_token"]) as app:
            assert app.get("/api/settings/webhooks").status_code == 403


def test_o64_consent_for_another_server_does_not_change_organizations(
    hub: RunningHub, client: Client, ada: User
) -> None:
    acme = create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as script:
        approve(browser, client.address(), orgs=[acme.id])
        approve(browser, client.address(resource=OTHER))
        assert "code" in redirect_parameters(browser.get(client.address(resource=OTHER, orgIds=acme.id, prompt="none")))
        assert script.get(f"/api/settings/connected-apps/{client.id}").json()["organizations"] == [acme.id]


def test_o64_userinfo_only_identifies_the_user(hub: RunningHub, ada: User) -> None:
    """As the consent page says: no organization and no billing, no matter what was granted on this hub."""
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, None, scopes=(*SCOPES, "read-billing", "read-repos"), refresh_tokens=True)
    with browser_of(hub, ada) as browser:
        own = redeem(client, redirect_parameters(approve(browser, client.address(), orgs=[acme.id]))["code"]).json()
        page = browser.get(client.address(resource=OTHER)).text
        assert "On this hub, it can only be used to identify you." in page
        assert "Organization access" not in page
    found = tokens(client, ada, resource=OTHER)
    started = devices.start(client, resource=OTHER)
    with browser_of(hub, ada) as browser:
        asked = devices.enter(browser, started["user_code"])
        assert "Organization access" not in asked.text
        devices.decide(browser, asked, "approve", scopes=list(client.app.scopes), orgs=[acme.id])
    device = devices.poll(client, started["device_code"]).json()
    for token in (found, refresh(client, found["refresh_token"]).json(), device):
        with api(hub, token["access_token"]) as app:
            for method in ("GET", "POST"):
                said = app.request(method, "/oauth/userinfo").json()
                assert (said["sub"], said["preferred_username"], said["email"]) == (ada.id, "ada", "ada@example.org")
                assert (said.pop("orgs"), said.pop("organizations"), said.pop("isPro")) == ([], [], False)
                about_user = {"sub", "name", "preferred_username", "profile", "picture", "email", "email_verified"}
                assert set(said) == about_user
    with api(hub, own["access_token"]) as app:
        assert [one["roleInOrg"] for one in app.get("/oauth/userinfo").json()["orgs"]] == ["admin"]


def test_o64_connected_apps_lists_the_other_servers(hub: RunningHub, client: Client, ada: User) -> None:
    path, page = f"/api/settings/connected-apps/{client.id}", f"/settings/connected/{client.id}"
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as script:
        approve(browser, client.address())
        assert script.get(path).json()["resources"] == []
        assert "mcp.example" not in browser.get(page).text
        approve(browser, client.address(resource=OTHER, scope="openid profile"))
        approve(browser, client.address(resource=SECOND, scope="openid", prompt="consent"))
        approve(browser, client.address(prompt="consent"))
        started = devices.start(client, resource="urn:example:tools")
        devices.decide(browser, devices.enter(browser, started["user_code"]), "approve", scopes=list(SCOPES))
        said = script.get(path).json()
        assert said["resources"] == [SECOND, OTHER, "urn:example:tools"]
        assert script.get("/api/settings/connected-apps").json()[0]["resources"] == said["resources"]
        for shown in (browser.get(page).text, browser.get("/settings/connected").text):
            for server in ("mcp.example", "files.example", "urn:example:tools"):
                assert f'<span class="mono">{server}</span>' in shown
        assert script.delete(path).status_code == 204
        assert (
            redirect_parameters(browser.get(client.address(resource=OTHER, prompt="none")))["error"]
            == "consent_required"
        )
        approve(browser, client.address())
        assert script.get(path).json()["resources"] == [], "what was revoked is forgotten"


def test_o64_scopes_for_other_servers_can_be_revoked(hub: RunningHub, client: Client, ada: User) -> None:
    path, page = f"/api/settings/connected-apps/{client.id}", f"/settings/connected/{client.id}"
    found = tokens(client, ada, resource=OTHER, scope="openid profile email")
    with (
        api(hub, create_token(hub, ada)) as script,
        browser_of(hub, ada) as browser,
        api(hub, found["access_token"]) as app,
    ):
        assert script.get(path).json()["resourceScopes"] == ["email", "profile", "openid"]
        assert "email" in app.get("/oauth/userinfo").json()
        refused = script.patch(path, json={"resourceScopes": ["openid", "read-repos"]})
        assert (refused.status_code, "read-repos" in refused.text) == (422, True)
        assert script.patch(path, json={"resourceScopes": ["openid", "profile"]}).status_code == 200
        assert "email" not in app.get("/oauth/userinfo").json()
        assert "Permissions on other servers" in browser.get(page).text
        submit(browser, page, page, resource_scopes=[OTHER, f"{OTHER} openid"])
        assert script.get(path).json()["resourceScopes"] == ["openid"]
        assert "preferred_username" not in app.get("/oauth/userinfo").json()
        assert refresh(client, found["refresh_token"]).json()["scope"] == "openid"
        assert script.patch(path, json={"resourceScopes": []}).json()["resourceScopes"] == []
        assert set(app.get("/oauth/userinfo").json()) <= {"sub", "orgs", "organizations", "isPro"}


def test_o64_server_whose_consent_is_not_remembered_is_listed_too(hub: RunningHub, ada: User) -> None:
    """Consent is not remembered for an app with a custom scheme, but the user must see which servers it was allowed
    for.
    """
    client = create_app(
        hub, None, scopes=SCOPES, redirect_uris=("com.example.app:/callback",), confidential=False, refresh_tokens=True
    )
    tokens(client, ada, resource=OTHER)
    with api(hub, create_token(hub, ada)) as script:
        assert script.get(f"/api/settings/connected-apps/{client.id}").json()["resources"] == [OTHER]


def test_o64_exchanged_token_is_for_the_hub_only(hub: RunningHub, ada: User) -> None:
    acme = create_organization(hub, "acme", ada)
    app = create_exchange_app(hub, acme)
    for resource in (OTHER, "x", f"{hub.url}/#a"):
        refused = send_exchange(app, "ada@example.org", resource=resource)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target"), resource
    for resource in (hub.url, f"{hub.url}/"):
        assert send_exchange(app, "ada@example.org", resource=resource).status_code == 200
    with api(hub, create_token(hub, ada)) as script:
        log = script.get("/api/organizations/acme/audit-log/export?q=type:oauth.token").json()
    assert [entry["data"].get("error") for entry in log].count("invalid_target") == 3


def test_hub_is_listed_as_a_protected_resource(hub: RunningHub) -> None:
    """RFC 9728, section 4."""
    with hub.client() as http:
        assert http.get("/.well-known/oauth-authorization-server").json()["protected_resources"] == [hub.url]
