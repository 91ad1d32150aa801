"""Tokens for registered resource servers: consent, introspection, JWTs, refresh, devices, connected apps."""

import base64
import json
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from tests.bed import devices
from tests.bed.apps import Client, approve, create_app, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.processes import until
from tests.bed.resource_servers import ADMIN, IDENTIFIER, TOOLS, register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User

SCOPE = "openid profile mcp:tools"


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub) -> Client:
    return create_app(hub, None, refresh_tokens=True)


def refresh(client: Client, token: str, **more: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})


def userinfo(hub: RunningHub, token: str) -> httpx.Response:
    with api(hub, token) as http:
        return http.get("/oauth/userinfo")


@pytest.mark.one_engine
def test_resource_server_introspects_tokens_of_any_client(hub: RunningHub, client: Client, ada: User) -> None:
    tools = register(hub, create_user(hub, "olga"))
    document = store_document(hub)
    for app in (client, document):
        found = tokens_for(app, ada, resource=IDENTIFIER, scope=SCOPE)
        assert found["scope"] == SCOPE
        said = tools.introspect(found["access_token"])
        times = {"exp": hub.clock() // 1_000_000 + 28800, "iat": hub.clock() // 1_000_000}
        assert said == {
            "active": True,
            "scope": SCOPE,
            "client_id": app.id,
            "username": "ada",
            "sub": ada.id,
            "aud": IDENTIFIER,
            "iss": hub.url,
            "token_type": "bearer",
            **times,
        }
        assert tools.introspect(found["refresh_token"]) == {"active": False}
        app.post("/oauth/revoke", {"token": found["access_token"]})
        assert tools.introspect(found["access_token"]) == {"active": False}
    # A client that writes the address in another way gets the same audience.
    other = register(hub, ada, "https://API.example", (TOOLS,))
    for spelling in ("https://api.example", "https://api.example/", "https://API.example:443/"):
        found = tokens_for(client, ada, resource=spelling, scope=SCOPE)
        assert other.introspect(found["access_token"])["aud"] == "https://API.example"


@pytest.mark.one_engine
def test_token_for_a_resource_server_has_no_powers_on_the_hub(hub: RunningHub, ada: User) -> None:
    wide = create_app(hub, None, scopes=("openid", "profile", "email", "manage-repos", "webhooks"))
    tools = register(hub, ada)
    with browser_of(hub, ada) as browser:
        page = browser.get(wide.address(resource=IDENTIFIER, scope="openid manage-repos webhooks mcp:tools"))
        assert 'value="manage-repos"' not in page.text
        assert "Use your tools" in page.text
        refused = redirect_parameters(browser.get(wide.address(resource=IDENTIFIER, scope="manage-repos")))
        assert refused["error"] == "invalid_scope"
    found = tokens_for(wide, ada, resource=IDENTIFIER, scope="openid manage-repos webhooks mcp:tools")
    assert found["scope"] == tools.introspect(found["access_token"])["scope"] == "openid mcp:tools"
    with api(hub, found["access_token"]) as app:
        assert app.get("/api/whoami-v2").status_code == 401
    # Without `scope`: what identifies the user, and all scopes of the server.
    with browser_of(hub, ada) as browser:
        address = wide.address(resource=IDENTIFIER, scope=None, prompt="consent")
        page = browser.get(address)
        assert ('value="manage-repos"' in page.text, 'value="mcp:admin"' in page.text) == (False, True)
        names = ["openid", "mcp:tools", "mcp:admin"]
        code = redirect_parameters(approve(browser, address, scopes=names))["code"]
    assert wide.redeem(code).json()["scope"] == "email profile openid mcp:tools mcp:admin"


@pytest.mark.one_engine
def test_consent_page_names_the_server_its_host_and_its_owner(hub: RunningHub, client: Client, ada: User) -> None:
    acme = create_organization(hub, "acme", create_user(hub, "olga"))
    register(hub, acme)
    address = client.address(resource=IDENTIFIER, scope=SCOPE)
    with browser_of(hub, ada) as browser:
        page = browser.get(address).text
        group = page[page.index("On <bdi>Toolbox") :].split("</fieldset>")[0]
        for shown in ("mcp.example", "@acme", "Use your tools", "mcp:tools"):
            assert shown in group, shown
        assert 'value="mcp:admin"' not in page
        code = redirect_parameters(approve(browser, address, scopes=["openid", "profile"]))["code"]
        assert client.redeem(code).json()["scope"] == "openid profile"
        asked = browser.get(address)
        assert asked.status_code == 200, "what was left unticked is asked for again"
        approve(browser, address)
        assert "code" in redirect_parameters(browser.get(client.address(resource=IDENTIFIER, scope="mcp:tools")))
        assert browser.get(client.address(resource=IDENTIFIER, scope="mcp:admin")).status_code == 200


def test_refresh_carries_the_resource_and_may_narrow(hub: RunningHub, client: Client, ada: User) -> None:
    tools = register(hub, ada)
    found = tokens_for(client, ada, resource=IDENTIFIER, scope="openid mcp:tools mcp:admin")
    narrow = refresh(client, found["refresh_token"], scope="mcp:tools").json()
    assert tools.introspect(narrow["access_token"])["scope"] == "mcp:tools"
    again = refresh(client, narrow["refresh_token"], resource=IDENTIFIER).json()
    assert tools.introspect(again["access_token"])["scope"] == "openid mcp:tools mcp:admin"
    with api(hub, create_token(hub, ada)) as script:
        script.patch(
            f"/api/settings/resources/{tools.server.id}", json={"scopes": [{"name": "mcp:tools", "text": "T"}]}
        )
        assert tools.introspect(again["access_token"])["scope"] == "openid mcp:tools", "removed by its owner"
        assert refresh(client, again["refresh_token"]).json()["scope"] == "openid mcp:tools"
        script.delete(f"/api/settings/resources/{tools.server.id}")
    assert tools.ask(again["access_token"]).status_code == 401
    gone = refresh(client, again["refresh_token"])
    assert (gone.status_code, gone.json()["error"]) == (400, "invalid_grant")


@pytest.mark.one_engine
def test_each_of_several_servers_gets_its_own_token(hub: RunningHub, client: Client, ada: User) -> None:
    """RFC 8707, section 2.2: a token request names one of the authorized servers."""
    tools = register(hub, ada, scopes=(TOOLS,))
    other = register(hub, ada, "https://b.example/", scopes=(ADMIN,), name="Other")
    address = client.address(scope="openid mcp:tools mcp:admin") + f"&resource={IDENTIFIER}&resource=https://b.example/"
    with browser_of(hub, ada) as browser:
        code = redirect_parameters(approve(browser, address))["code"]
    refused = client.redeem(code)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target")
    first = client.redeem(code, resource=IDENTIFIER).json()
    second = refresh(client, first["refresh_token"], resource="https://b.example").json()
    assert (first["scope"], second["scope"]) == ("openid mcp:tools", "openid mcp:admin")
    assert (tools.accepts(first["access_token"]), other.accepts(first["access_token"])) == (True, False)
    assert (tools.accepts(second["access_token"]), other.accepts(second["access_token"])) == (False, True)
    register(hub, ada, "https://c.example/", scopes=(TOOLS,), name="Third")
    both = client.address(scope="openid mcp:tools") + f"&resource={IDENTIFIER}&resource=https://c.example/"
    with browser_of(hub, ada) as browser:
        assert redirect_parameters(browser.get(both))["error"] == "invalid_target", "both have mcp:tools"


@pytest.mark.one_engine
def test_device_flow_carries_the_resource(hub: RunningHub, client: Client, ada: User) -> None:
    tools = register(hub, create_user(hub, "olga"))
    for scope in ("openid read-repos", "openid files:read"):
        refused = client.post("/oauth/device", {"resource": IDENTIFIER, "scope": scope})
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope"), scope
    started = devices.start(client, resource=IDENTIFIER, scope=SCOPE)
    with browser_of(hub, ada) as browser:
        page = devices.enter(browser, started["user_code"])
        assert ("On <bdi>Toolbox" in page.text, "@olga" in page.text) == (True, True)
        devices.decide(browser, page, "approve", scopes=SCOPE.split())
    found = devices.poll(client, started["device_code"]).json()
    assert tools.introspect(found["access_token"])["scope"] == SCOPE
    assert tools.accepts(refresh(client, found["refresh_token"]).json()["access_token"])


@pytest.mark.one_engine
def test_device_for_servers_with_scopes_of_the_same_name_is_refused(hub: RunningHub, client: Client, ada: User) -> None:
    """Which servers run on the user's computer is known only once the code is entered."""
    first, second = "http://127.0.0.1:9000/mcp", "http://127.0.0.1:9001/mcp"
    for identifier in (first, second):
        register(hub, ada, identifier)
    form = {"client_id": client.id, "scope": "openid mcp:tools", "resource": [first, second]}
    with hub.client() as http:
        started = http.post("/oauth/device", data=form, auth=client.basic).json()
    with browser_of(hub, ada) as browser:
        for _ in range(12):
            page = devices.enter(browser, started["user_code"])
            assert (page.status_code, "scopes of the same name" in page.text) == (400, True), page.text
            assert 'name="user_code"' in page.text, "the code itself is right, and not counted as a wrong one"


@pytest.mark.one_engine
def test_local_server_accepts_only_tokens_of_its_owner(hub: RunningHub, client: Client, ada: User) -> None:
    bob, local = create_user(hub, "bob"), "http://127.0.0.1:9000/mcp"
    of_ada, of_bob = register(hub, ada, local), register(hub, bob, local, (TOOLS,), name="Bob's")
    mine = tokens_for(client, ada, resource=local, scope=SCOPE)
    theirs = tokens_for(client, bob, resource=local, scope=SCOPE)
    assert (of_ada.accepts(mine["access_token"]), of_bob.accepts(mine["access_token"])) == (True, False)
    assert (of_ada.accepts(theirs["access_token"]), of_bob.accepts(theirs["access_token"])) == (False, True)
    cyd = create_user(hub, "cyd")
    bare = tokens_for(client, cyd, resource=local, scope=SCOPE)
    assert bare["scope"] == "openid profile", "no server of hers"
    assert not of_ada.accepts(bare["access_token"])
    with browser_of(hub) as visitor:
        sent = visitor.get(client.address(resource=local, scope="mcp:tools"))
        assert sent.headers["location"].startswith("/login"), "which server it is depends on the user"
    many = " ".join(f"s{number}" for number in range(60))
    for scope in ("read-repos", "openid " + "x" * 61, 'a"b', many):
        refused = client.post("/oauth/device", {"resource": local, "scope": scope})
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_scope"), scope
    assert "read-repos is a scope of this hub" in error_of_device(client, local, "read-repos")
    assert error_of_device(client, local, 'a"b') == "a?b is not a scope's name such as mcp:tools."
    started = devices.start(client, resource=local, scope=SCOPE)
    devices.approve(hub, ada, started["user_code"], SCOPE)
    found = devices.poll(client, started["device_code"]).json()
    assert (found["scope"], of_ada.accepts(found["access_token"])) == (SCOPE, True)


@pytest.mark.one_engine
def test_scopes_of_an_unregistered_local_server_are_refused_with_the_cause(
    hub: RunningHub, client: Client, ada: User
) -> None:
    local, cause = "http://127.0.0.1:9000/mcp", "exist only for the user who has registered it under APIs you protect"
    register(hub, create_user(hub, "bob"), local)
    limited = create_app(hub, None, scopes=("openid",))
    assert error_of_device(limited, local, "email") == "email is not ticked in this app's settings."
    assert cause in error_of_device(client, local, "read-repos")
    started = devices.start(client, resource=local, scope="mcp:tools")
    with browser_of(hub, ada) as browser:
        page = devices.enter(browser, started["user_code"])
        assert (page.status_code, cause in page.text) == (400, True), page.text
        refused = redirect_parameters(browser.get(client.address(resource=local, scope="mcp:tools")))
        assert (refused["error"], cause in refused["error_description"]) == ("invalid_scope", True)


def error_of_device(client: Client, resource: str, scope: str) -> str:
    return str(client.post("/oauth/device", {"resource": resource, "scope": scope}).json()["error_description"])


def decoded(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, body, _ = token.split(".")
    header, claims = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, body))
    return header, claims


def verify(hub: RunningHub, token: str) -> None:
    """As a resource server does, with the published keys."""
    header, _ = decoded(token)
    with hub.client() as http:
        (key,) = (key for key in http.get("/oauth/jwks").json()["keys"] if key["kid"] == header["kid"])
    n, e = (int.from_bytes(base64.urlsafe_b64decode(key[name] + "==")) for name in ("n", "e"))
    signed, _, signature = token.rpartition(".")
    public = rsa.RSAPublicNumbers(e, n).public_key()
    public.verify(base64.urlsafe_b64decode(signature + "=="), signed.encode(), padding.PKCS1v15(), SHA256())


@pytest.mark.one_engine
def test_jwt_access_tokens_are_verified_with_the_published_keys(hub: RunningHub, client: Client, ada: User) -> None:
    tools = register(hub, ada, tokens="jwt")
    found = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
    token, now = found["access_token"], hub.clock() // 1_000_000
    verify(hub, token)
    header, claims = decoded(token)
    assert (header["typ"], header["alg"], found["expires_in"]) == ("at+jwt", "RS256", 600)
    jti = claims.pop("jti")
    assert claims == {
        "iss": hub.url,
        "sub": ada.id,
        "aud": IDENTIFIER,
        "client_id": client.id,
        "scope": SCOPE,
        "iat": now,
        "exp": now + 600,
        "auth_time": claims["auth_time"],
        "username": "ada",
    }
    said = tools.introspect(token)
    assert (said["active"], said["scope"], said["exp"]) == (True, SCOPE, now + 600)
    assert client.post("/oauth/introspect", {"token": token}).json()["aud"] == IDENTIFIER
    assert userinfo(hub, token).json()["preferred_username"] == "ada"
    with api(hub, token) as app:
        refused = app.get("/api/whoami-v2")
        assert (refused.status_code, "mcp.example" in refused.text) == (401, True)
    renewed = refresh(client, found["refresh_token"]).json()["access_token"]
    assert decoded(renewed)[1]["jti"] != jti
    assert client.post("/oauth/revoke", {"token": token}).status_code == 200
    assert (tools.accepts(token), tools.accepts(renewed)) == (False, True), "introspection knows revocation"
    assert userinfo(hub, token).status_code == 401
    hub.clock.advance(601)
    assert not tools.accepts(renewed)


@pytest.mark.one_engine
def test_forged_jwts_are_not_access_tokens(hub: RunningHub, client: Client, ada: User) -> None:
    tools = register(hub, ada, tokens="jwt")
    found = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
    head, body, signature = found["access_token"].split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "at+jwt"}).encode()).rstrip(b"=").decode()
    _, claims = decoded(found["access_token"])
    other = base64.urlsafe_b64encode(json.dumps({**claims, "scope": "mcp:admin"}).encode()).rstrip(b"=").decode()
    forged = (
        f"{none}.{body}.",
        f"{none}.{body}.{signature}",
        f"{head}.{other}.{signature}",
        f"{head}.{body}.",
        "a.b.c",
    )
    for token in (*forged, found["id_token"], claims["jti"]):
        assert not tools.accepts(token), token
        assert userinfo(hub, token).status_code == 401, token
    # An access token is not an ID token, either.
    with browser_of(hub, ada) as browser:
        hinted = client.address(id_token_hint=found["access_token"])
        assert redirect_parameters(browser.get(hinted))["error"] == "invalid_request"


@pytest.mark.one_engine
def test_connected_apps_lists_and_narrows_each_server(hub: RunningHub, client: Client, ada: User) -> None:
    tools, other = register(hub, ada), register(hub, ada, "https://b.example/", (TOOLS,), name="Other")
    first = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
    second = tokens_for(client, ada, resource="https://b.example/", scope="openid mcp:tools")
    path, page = f"/api/settings/connected-apps/{client.id}", f"/settings/connected/{client.id}"
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        said = script.get(path).json()
        assert said["resources"] == ["https://b.example/", IDENTIFIER]
        assert said["resourceScopes"] == ["profile", "openid", "mcp:tools"]
        on_each = {"https://b.example/": ["openid", "mcp:tools"], IDENTIFIER: ["profile", "openid", "mcp:tools"]}
        assert said["scopesByResource"] == on_each
        shown = browser.get(page).text
        for text in ("<bdi>Toolbox</bdi>", "<bdi>Other</bdi>", "Use your tools"):
            assert text in shown
        refused = script.patch(path, json={"scopesByResource": {IDENTIFIER: ["mcp:admin"]}})
        assert (refused.status_code, "mcp:admin" in refused.text) == (422, True)
        unknown = script.patch(path, json={"scopesByResource": {"https://MCP.example/mcp": []}})
        assert (unknown.status_code, "https://MCP.example/mcp" in unknown.text) == (422, True), "nothing was revoked"
        script.patch(path, json={"scopesByResource": {IDENTIFIER: ["openid"]}})
        assert tools.introspect(first["access_token"])["scope"] == "openid"
        assert other.introspect(second["access_token"])["scope"] == "openid mcp:tools"
        left = ["https://b.example/", "https://b.example/ openid", IDENTIFIER]
        assert submit(browser, page, page, resource_scopes=left).status_code == 303
        assert script.get(path).json()["scopesByResource"] == {"https://b.example/": ["openid"], IDENTIFIER: []}
        assert other.introspect(second["access_token"])["scope"] == "openid"
        assert script.delete(path).status_code == 204
    assert not other.accepts(second["access_token"])


@pytest.mark.one_engine
def test_introspection_counts_as_use_of_the_token(hub: RunningHub, client: Client, ada: User) -> None:
    """O21: the predecessor of a refresh token is superseded by the first use of an access token of its successor."""
    tools = register(hub, ada)
    found = tokens_for(client, ada, resource=IDENTIFIER, scope=SCOPE)
    renewed = refresh(client, found["refresh_token"]).json()
    hub.clock.advance(60 * 60)
    assert tools.accepts(renewed["access_token"])
    with api(hub, create_token(hub, ada)) as script:
        # The use is recorded in the background.
        connected = f"/api/settings/connected-apps/{client.id}"
        until(lambda: script.get(connected).json()["lastUsedAt"] == "2026-09-21T15:13:20.000Z")
    hub.clock.advance(61)
    assert refresh(client, found["refresh_token"]).json()["error"] == "invalid_grant"
    assert not tools.accepts(renewed["access_token"]), "the family is revoked"


@pytest.mark.one_engine
@pytest.mark.parametrize("pair", ["a\0b:hfrs_x", "a%00b:hfrs_x", ":hfrs_x", f"{'a' * 3000}:hfrs_x"])
def test_invalid_ids_of_resource_servers_are_rejected(hub: RunningHub, pair: str) -> None:
    header = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    refused = httpx.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, headers=header)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
