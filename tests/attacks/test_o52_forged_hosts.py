"""O52: forged Host, X-Forwarded-Host, X-Forwarded-Proto and X-Forwarded-For from an untrusted peer change nothing."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import Client, create_app, pkce_pair, redirect_parameters
from tests.bed.engines import Engine, SqliteEngine, settings_for
from tests.bed.people import Page, browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

FORGED = {
    "host": "evil.example",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
    "x-forwarded-for": "203.0.113.9",
    "forwarded": "host=evil.example;proto=https;for=203.0.113.9",
}


@pytest.mark.parametrize("path", ["/", "/docs/api", "/nothing", "/api/nothing", "/api/openapi.json", "/oauth/jwks"])
def test_o52_links_and_cookies_are_not_affected(hub: RunningHub, path: str) -> None:
    with hub.client() as client:
        plain, forged = client.get(path), client.get(path, headers=FORGED)
    assert forged.status_code == plain.status_code
    assert "evil.example" not in forged.text + str(forged.headers)
    assert "secure" not in forged.headers.get("set-cookie", "").lower()


METADATA = [f"/.well-known/{name}" for name in ("openid-configuration", "oauth-authorization-server")]
RESOURCE = "/.well-known/oauth-protected-resource"


@pytest.fixture(params=["", "127.0.0.0/8"], ids=["untrusted", "trusted"])
def behind(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """A trusted proxy reports the visitor's address; it does not decide the hub's URL."""
    settings = settings_for(engine.fresh_url(), tmp_path, trusted_proxies=request.param)
    with run_hub(settings) as hub:
        yield hub


def claims_of(id_token: str) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(id_token.split(".")[1] + "=="))
    return claims


def test_o52_discovery_uses_the_hubs_own_url(behind: RunningHub) -> None:
    with behind.client() as client:
        for path in (*METADATA, RESOURCE):
            plain, forged = client.get(path), client.get(path, headers=FORGED)
            assert forged.status_code == 200
            assert forged.json() == plain.json()
        for path in METADATA:
            said = client.get(path, headers=FORGED).json()
            assert said["issuer"] == behind.url
            addresses = [value for name, value in said.items() if name.endswith(("_endpoint", "_uri"))]
            assert len(addresses) >= 6
            assert all(address.startswith(f"{behind.url}/") for address in addresses)
        assert client.get(RESOURCE, headers=FORGED).json()["resource"] == behind.url
        refused = client.get("/api/whoami-v2", headers=FORGED)
        assert f'resource_metadata="{behind.url}{RESOURCE}"' in refused.headers["www-authenticate"]


def approved(browser: httpx.Client, client: Client, **parameters: str) -> dict[str, str]:
    address = client.address(**parameters)
    shown = browser.get(address, headers=FORGED)
    assert "evil.example" not in shown.text + str(shown.headers)
    form = {**Page(shown).hidden(), "decision": "approve", "scopes": list(client.app.scopes)}
    return redirect_parameters(browser.post(address, data=form, headers=FORGED))


def test_o52_sign_in_uses_the_hubs_own_url(behind: RunningHub) -> None:
    ada, client = create_user(behind, "ada"), create_app(behind, create_user(behind, "olga"))
    verifier, challenge = pkce_pair()
    asked = {"code_challenge": challenge, "code_challenge_method": "S256"}
    with browser_of(behind, ada) as browser, behind.client(headers=FORGED) as program:
        answers = [
            approved(browser, client, **asked),
            redirect_parameters(browser.get(client.address(**asked), headers=FORGED)),
            redirect_parameters(browser.get(client.address(scope="nonsense"), headers=FORGED)),
            redirect_parameters(program.get(client.address(prompt="none"))),
        ]
        assert [answer["iss"] for answer in answers] == [behind.url] * 4
        assert answers[2]["error_uri"].startswith(f"{behind.url}/oauth/explain/")
        to_sign_in = program.get(client.address())
        assert to_sign_in.headers["location"].startswith("/login?")
        assert "evil.example" not in to_sign_in.headers["location"]
        form = {
            "grant_type": "authorization_code",
            "code": answers[0]["code"],
            "redirect_uri": client.app.redirect_uris[0],
            "code_verifier": verifier,
        }
        body = program.post("/oauth/token", data=form, auth=client.basic).json()
        claims = claims_of(body["id_token"])
        assert claims["iss"] == behind.url
        bearer = {"authorization": f"Bearer {body['access_token']}"}
        said = program.get("/oauth/userinfo", headers=bearer).json()
        for told in (claims, said):
            assert told["picture"].startswith(f"{behind.url}/")
            assert told["profile"] == f"{behind.url}/ada"
        looked_up = program.post("/oauth/introspect", data={"token": body["access_token"]}, auth=client.basic).json()
        assert (looked_up["active"], looked_up["iss"]) == (True, behind.url)
        refused = program.post("/oauth/token", data=form, auth=client.basic).json()
        assert refused["error_uri"].startswith(f"{behind.url}/oauth/explain/")


def test_o52_paging_links_use_the_hubs_own_url(hub: RunningHub) -> None:
    from tests.bed.testbuild import TABLE

    hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(TABLE)))
    with hub.client() as client:
        for name in ("a", "b"):
            client.post("/api/test/write", json={"name": name, "value": ""})
        assert client.get("/api/test/names?limit=1", headers=FORGED).links["next"]["url"].startswith(hub.url)


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_o52_an_untrusted_peer_cannot_choose_its_address(sqlite_template: Path, tmp_path: Path, server: str) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, server=server)) as hub, hub.client() as client:
        assert client.post("/api/test/echo", data={"a": "b"}, headers=FORGED).json()["ip"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("forwarded", "seen"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.1.1", "203.0.113.9"),
        ("not an address", "127.0.0.1"),
        ("203.0.113.9, not an address", "127.0.0.1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8::1", "2001:db8::1"),
        ("203.0.113.9:51234", "203.0.113.9"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("", "127.0.0.1"),
    ],
)
def test_o52_client_address_is_the_nearest_untrusted_one(
    sqlite_template: Path, tmp_path: Path, forwarded: str, seen: str
) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, trusted_proxies="127.0.0.0/8,10.0.0.0/8")) as hub, hub.client() as client:
        response = client.post("/api/test/echo", data={"a": "b"}, headers={**FORGED, "x-forwarded-for": forwarded})
        assert response.json()["ip"] == seen
        assert "evil.example" not in client.get("/api/openapi.json", headers=FORGED).text
