"""Apps that register themselves (RFC 7591) and manage their registration (RFC 7592)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import approve, redirect_parameters, tokens_for
from tests.bed.engines import Engine
from tests.bed.people import api, browser_of, create_user
from tests.bed.registration import PATH, REDIRECT, open_to_registration, register, self_registered
from tests.bed.running_hub import RunningHub

from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import Conflict
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.registration import initial_tokens
from hubgate.server.resources import Hub
from hubgate.server.scopes import SCOPE_NAMES
from hubgate.server.worker.sweep import Sweep

pytestmark = pytest.mark.one_engine

DISCOVERY = "/.well-known/oauth-authorization-server"
DAY = 24 * 60 * 60


@pytest.fixture
def opened(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with open_to_registration(engine, tmp_path) as hub:
        yield hub


def test_registration_is_off_by_default(hub: RunningHub) -> None:
    refused = register(hub)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (404, "*")
    assert "cannot register themselves" in refused.json()["error_description"]
    with hub.client() as anyone:
        assert "registration_endpoint" not in anyone.get(DISCOVERY).json()


def test_app_registers_itself_and_signs_a_user_in(opened: RunningHub) -> None:
    with opened.client() as anyone:
        assert anyone.get(DISCOVERY).json()["registration_endpoint"] == opened.url + PATH
    answer = register(opened, logo_uri="https://app.example/logo.svg", contacts=["a@app.example"], software_id="x")
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    registered = answer.json()
    assert len(registered.pop("registration_access_token")) > 40
    client_id = registered.pop("client_id")
    assert set(registered.pop("scope").split()) == SCOPE_NAMES
    assert registered == {
        "client_id_issued_at": opened.clock() // 1_000_000,
        "client_name": "Toolbox",
        "redirect_uris": [REDIRECT],
        "grant_types": [
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "id_token_signed_response_alg": "RS256",
        "registration_client_uri": f"{opened.url}{PATH}/{client_id}",
    }
    client, ada = self_registered(opened), create_user(opened, "ada")
    pkce = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
    with browser_of(opened, ada) as browser:
        assert redirect_parameters(browser.get(client.address()))["error"] == "invalid_request", "PKCE is required"
        page = browser.get(client.address(scope="openid", **pkce)).text
        assert "Self-registered on" in page
        assert "Nobody on this hub vouches for this app." in page
    tokens = tokens_for(client, ada, scope=None)
    assert (tokens["scope"], "refresh_token" in tokens) == ("openid profile", True), "few scopes unless it names them"
    with api(opened, tokens["access_token"]) as app:
        assert app.get("/oauth/userinfo").json()["preferred_username"] == "ada"


def test_registered_app_manages_its_registration(opened: RunningHub) -> None:
    given = register(opened, scope="openid profile mcp:tools", client_uri="https://app.example").json()
    assert given["scope"] == "profile openid", "unknown scopes are left out"
    address, token = given["registration_client_uri"], given["registration_access_token"]
    other = register(opened).json()
    with opened.client(headers={"authorization": f"Bearer {token}"}) as owner:
        assert owner.get(address).json() == given
        changes: dict[str, Any] = {"client_id": given["client_id"], "redirect_uris": ["https://app.example/cb"]}
        changed = owner.put(address, json={**changes, "client_name": "Toolbox 2"})
        assert (changed.status_code, changed.json()["client_name"]) == (200, "Toolbox 2")
        assert changed.json()["registration_access_token"] == token
        assert owner.get(address).json()["redirect_uris"] == ["https://app.example/cb"]
        assert owner.get(address).json()["grant_types"][:1] == ["authorization_code"]
        assert "client_uri" not in owner.get(address).json(), "an update replaces everything"
        for client_id in (None, other["client_id"]):
            assert owner.put(address, json={**changes, "client_id": client_id}).status_code == 400
        assert owner.put(address, json={**changes, "redirect_uris": ["javascript:x"]}).status_code == 400
        for theirs in (other["registration_client_uri"], f"{opened.url}{PATH}/unknown"):
            for method in ("GET", "DELETE"):
                refused = owner.request(method, theirs)
                assert (refused.status_code, refused.json()["error"]) == (401, "invalid_token")
        assert owner.delete(address).status_code == 204
        assert owner.get(address).status_code == 401
    with opened.client() as anyone:
        for method in ("GET", "PUT", "DELETE"):
            assert anyone.request(method, other["registration_client_uri"], json={}).status_code == 401
        gone = anyone.get("/oauth/authorize", params={"client_id": given["client_id"], "response_type": "code"})
        assert gone.status_code == 400


def test_changed_app_asks_again(opened: RunningHub) -> None:
    given = register(opened).json()
    ada, client = create_user(opened, "ada"), self_registered(opened, redirect_uris=["https://app.example/cb"])
    pkce = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
    address = client.address(scope="openid", client_id=given["client_id"], redirect_uri=REDIRECT, **pkce)
    with browser_of(opened, ada) as browser:
        approve(browser, address)
        assert "code" in redirect_parameters(browser.get(address))
        changes = {"client_id": given["client_id"], "redirect_uris": [REDIRECT, "https://app.example/other"]}
        headers = {"authorization": f"Bearer {given['registration_access_token']}"}
        assert httpx.put(given["registration_client_uri"], json=changes, headers=headers).status_code == 200
        assert "Changed since you last approved it" in browser.get(address).text


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://app.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["data:text/html,x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT] * 2 + [f"{REDIRECT}/{n}" for n in range(50)]}, "invalid_redirect_uri"),
        ({"redirect_uris": "x"}, "invalid_client_metadata"),
        ({"redirect_uris": [1]}, "invalid_client_metadata"),
        ({"post_logout_redirect_uris": ["http://app.example/"]}, "invalid_redirect_uri"),
        ({"client_name": "x" * 97}, "invalid_client_metadata"),
        ({"client_name": "evil\u202etxt"}, "invalid_client_metadata"),
        ({"client_name": "a\0b"}, "invalid_client_metadata"),
        ({"client_name": "\u3164\u2800"}, "invalid_client_metadata"),
        ({"client_uri": "javascript:x"}, "invalid_client_metadata"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": ["refresh_token"]}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "invalid_client_metadata"),
    ],
    ids=range(17),
)
def test_invalid_metadata_is_rejected(opened: RunningHub, metadata: dict[str, Any], error: str) -> None:
    refused = register(opened, **metadata)
    assert (refused.status_code, refused.json()["error"]) == (400, error)


def test_lenient_metadata_is_accepted(opened: RunningHub) -> None:
    """Clients that expect a secret learn from the response that they have none."""
    for method in ("client_secret_basic", "client_secret_post", None):
        given = register(opened, token_endpoint_auth_method=method, client_name=None, scope="mcp:tools").json()
        assert (given["token_endpoint_auth_method"], "client_secret" in given) == ("none", False)
        assert given["client_name"] == "Unnamed app"
        assert set(given["scope"].split()) == SCOPE_NAMES
    device = ["urn:ietf:params:oauth:grant-type:device_code"]
    given = register(opened, redirect_uris=None, response_types=None, grant_types=device).json()
    assert (given["grant_types"], given["redirect_uris"], given["response_types"]) == (device, [], [])
    with opened.client() as anyone:
        for body in (b"", b"{", b"[]", b'"x"', b"\xff"):
            refused = anyone.post(PATH, content=body, headers={"content-type": "application/json"})
            assert (refused.status_code, refused.json()["error"]) == (400, "invalid_client_metadata"), body
        preflight = anyone.options(
            PATH, headers={"access-control-request-method": "POST", "origin": "https://a.example"}
        )
        assert "POST" in preflight.headers["access-control-allow-methods"], "clients in browsers register too"


def test_operators_token_may_be_required(engine: Engine, tmp_path: Path) -> None:
    with open_to_registration(engine, tmp_path, "token") as hub:
        token, stored = hub.call(lambda opened: initial_tokens.create(opened.oauth))
        for wrong in ("", "hf_register_nonsense"):
            refused = register(hub, wrong)
            assert (refused.status_code, refused.json()["error"]) == (401, "invalid_token")
            assert ('error="invalid_token"' in refused.headers["www-authenticate"]) == bool(wrong)
        for _ in range(2):
            assert register(hub, token).status_code == 201
        listed = hub.call(lambda opened: initial_tokens.list_all(opened.oauth))
        assert [(one.id, one.registrations) for one in listed] == [(stored.id, 2)]

        async def revoke(opened: Hub) -> None:
            await initial_tokens.revoke(opened.oauth, stored.id)

        hub.call(revoke)
        assert register(hub, token).status_code == 401


def test_app_that_nobody_uses_is_removed(opened: RunningHub) -> None:
    """A refresh is a use: a token for another server is never sent to the hub."""
    ada, used, unused = create_user(opened, "ada"), self_registered(opened), self_registered(opened)
    tokens = tokens_for(used, ada, scope="openid")

    def sweep() -> None:
        opened.call(lambda hub: Sweep(hub.db, hub.clock).step())

    def is_known(client_id: str) -> bool:
        with opened.client() as anyone:
            asked = {"client_id": client_id, "redirect_uri": REDIRECT, "response_type": "code"}
            return anyone.get("/oauth/authorize", params=asked).status_code == 303

    opened.clock.advance(29 * DAY)
    sweep()
    assert (is_known(used.id), is_known(unused.id)) == (True, True)
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    tokens = used.post("/oauth/token", refresh).json()
    opened.clock.advance(DAY)
    sweep()
    assert (is_known(used.id), is_known(unused.id)) == (True, False)
    opened.clock.advance(29 * DAY)
    sweep()
    assert not is_known(used.id)
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert used.post("/oauth/token", refresh).json()["error"] == "invalid_client"
    with browser_of(opened, ada) as browser:
        assert "Toolbox" not in browser.get("/settings/connected").text


def test_app_that_registered_itself_never_gets_a_secret(opened: RunningHub) -> None:
    """Its next update would make it public again while the secret stays valid."""
    client = self_registered(opened)
    with pytest.raises(Conflict, match="registered itself"):
        opened.call(lambda hub: management.refresh_secret(hub.oauth, client.app, 0, SYSTEM))
    with pytest.raises(Conflict, match="registered itself"):
        opened.call(lambda hub: privileges.set_exchange(hub.oauth, client.id, True, SYSTEM))


def test_hostile_metadata_is_rejected_or_ignored(opened: RunningHub) -> None:
    headers = {"content-type": "application/json"}
    good = f'"redirect_uris": ["{REDIRECT}"]'
    deep = "[" * 5000 + "]" * 5000
    bodies = [
        *(f'{{{good}, "{name}": "a\\ud800b"}}' for name in ("client_name", "client_uri", "scope", "other")),
        *(f'{{{good}, "{name}": "a\\u0000b"}}' for name in ("client_name", "scope", "other")),
        *(f'{{{good}, "{name}": {deep}}}' for name in ("client_name", "scope", "other", "redirect_uris")),
        *(f'{{{good}, "{name}": {"9" * 5000}}}' for name in ("client_name", "other")),
        f'{{{good}, "scope": "{"openid " * 3000}"}}',
        f'{{{good}, "client_name": "   "}}',
        f'{{{good}, "client_uri": "https://["}}',
        f'{{{good}, "client_uri": "https://"}}',
        f'{{{good}, "grant_types": []}}',
        f'{{{good}, "response_types": []}}',
    ]
    with opened.client(headers=headers) as anyone:
        for body in bodies:
            answer = anyone.post(PATH, content=body)
            assert answer.status_code in (201, 400), (body[:90], answer.text)
            if answer.status_code == 201:
                shown = anyone.get("/oauth/authorize", params={"client_id": answer.json()["client_id"]})
                assert shown.status_code in (303, 400), body[:90]
            opened.clock.advance(60 * 60)
        for uri in (
            "JavaScript:alert(1)", "java\tscript:x", " javascript:x", "vbscript:x", "intent://x", "https://", "https:///x",
            "https:x", "https://a b/", "http://localhost.evil.example/", "http://127.0.0.1.evil.example/", "//x/",
            "http://[::1]@evil.example/", "http://localhost:99999/", "http://0x7f.1/", "https://a/#", "x", "https://a\\b/",
            "https://\u202egnp.example/", "view-source:https://a/", "blob:https://a/b", "http://localhost%2eevil/",
        ):  # fmt: skip
            refused = anyone.post(PATH, json={"redirect_uris": [uri]})
            assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri"), uri
        for name in ("%00", "%ff", "x" * 5000, "%2e%2e", "a%2fb"):
            for method in ("GET", "PUT", "DELETE", "HEAD"):
                assert anyone.request(method, f"{PATH}/{name}", content="{}").status_code in (400, 401, 404), name
