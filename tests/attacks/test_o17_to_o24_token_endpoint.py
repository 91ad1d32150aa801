"""O17-O24: client authentication at the token endpoint, and refresh tokens."""

import base64
from urllib.parse import quote

import httpx
import pytest
from tests.bed import devices, lean_http
from tests.bed.apps import Client, code_for, create_app, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.resources import Hub


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def client(hub: RunningHub, ada: User) -> Client:
    return create_app(hub, ada, refresh_tokens=True)


JSON = {"content-type": "application/json"}


def refresh(client: Client, token: str, **more: str) -> httpx.Response:
    return client.post("/oauth/token", {"grant_type": "refresh_token", "refresh_token": token, **more})


@pytest.mark.one_engine
@pytest.mark.parametrize("doubled", ["grant_type", "code", "redirect_uri", "client_id", "code_verifier", "unknown"])
def test_o17_repeated_parameter_is_rejected(hub: RunningHub, client: Client, ada: User, doubled: str) -> None:
    fields = {
        "grant_type": "authorization_code",
        "code": code_for(client, ada),
        "redirect_uri": "https://app.example/callback",
    }
    body = "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())
    body += f"&{doubled}=a&{doubled}=a"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    response = lean_http.post(f"{hub.url}/oauth/token", content=body, headers=headers, auth=client.basic)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


@pytest.mark.one_engine
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/introspect"])
def test_o17_repeated_json_member_is_rejected(hub: RunningHub, client: Client, ada: User, path: str) -> None:
    fields = {"grant_type": "refresh_token", "refresh_token": tokens_for(client, ada)["refresh_token"], "token": "x"}
    for doubled in ("grant_type", "code", "client_id", "refresh_token", "token", "unknown", "sc\\u006fpe"):
        members = [f'"{name}": "{value}"' for name, value in fields.items() if name != doubled]
        value = {"client_id": client.id, **fields}.get(doubled, "openid")
        for first in (f'"{value}"', "null", '""'):
            body = "{" + ", ".join([*members, f'"{doubled}": {first}', f'"{doubled}": "{value}"']) + "}"
            response = lean_http.post(hub.url + path, content=body, headers=JSON, auth=client.basic)
            assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), body


SHAPES = {
    "nothing": b"",
    "null": b"null",
    "an array": b'[["grant_type", "refresh_token"]]',
    "a text": b'"grant_type"',
    "no JSON": b"grant_type=refresh_token",
    "not UTF-8": b'{"grant_type": "\xff"}',
    "UTF-16": '{"grant_type": "x"}'.encode("utf-16"),
    "a number with a point": b'{"grant_type": 1.5}',
    "not a number": b'{"grant_type": NaN}',
    "a huge number": b'{"grant_type": 1' + b"0" * 5000 + b"}",
    "true": b'{"grant_type": true}',
    "an object in it": b'{"grant_type": {"a": "b"}}',
    "an empty object in it": b'{"grant_type": {}}',
    "two values": b'{"grant_type": ["refresh_token", "refresh_token"]}',
    "values in values": b'{"resource": [["a"]]}',
    "NUL": b'{"grant_type": "refresh_token\\u0000"}',
    "NUL in a name": b'{"grant_type\\u0000": "refresh_token"}',
    "half a character": b'{"grant_type": "\\ud800"}',
    "half a character in a name": b'{"\\ud800": "a", "\\ud800": "a"}',
    "deep": b'{"resource": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
}


@pytest.mark.one_engine
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
def test_o17_json_body_of_the_wrong_shape_is_rejected(hub: RunningHub, client: Client, path: str) -> None:
    for shape, body in SHAPES.items():
        response = lean_http.post(hub.url + path, content=body, headers=JSON, auth=client.basic)
        assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), shape


@pytest.mark.one_engine
def test_json_body_is_accepted_like_a_form(hub: RunningHub, client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    body = {"grant_type": "refresh_token", "refresh_token": token, "scope": None, "client_secret": None, "max_age": 1}
    more = {"resource": [hub.url, f"{hub.url}/"], "audience": [], "scope": ["openid"]}
    for sent in (body, {**body, **more}):
        response = lean_http.post(f"{hub.url}/oauth/token", json=sent, auth=client.basic)
        assert response.status_code == 200, response.text
    assert response.json()["scope"] == "openid"


@pytest.mark.one_engine
def test_o17_resource_may_repeat(hub: RunningHub, client: Client, ada: User) -> None:
    body = (
        f"grant_type=authorization_code&code={code_for(client, ada)}&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback"
    )
    body += f"&resource={quote(hub.url, safe='')}&resource={quote(hub.url, safe='')}%2F"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert lean_http.post(f"{hub.url}/oauth/token", content=body, headers=headers, auth=client.basic).status_code == 200


@pytest.mark.one_engine
def test_o18_two_client_authentication_methods_are_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    assert client.secret is not None
    form = {"grant_type": "authorization_code", "code": code_for(client, ada), "client_secret": client.secret}
    response = lean_http.post(f"{hub.url}/oauth/token", data=form, auth=client.basic)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")


@pytest.mark.one_engine
@pytest.mark.parametrize("grant", list(GRANTS))
def test_o19_confidential_app_without_its_secret_is_rejected(
    hub: RunningHub, client: Client, ada: User, grant: str
) -> None:
    tokens, started = tokens_for(client, ada), devices.start(client)
    devices.approve(hub, ada, started["user_code"], "openid profile")
    form = {
        "grant_type": grant,
        "client_id": client.id,
        "code": "x",
        "refresh_token": tokens["refresh_token"],
        "device_code": started["device_code"],
        "subject_token": "ada@example.org",
        "subject_token_type": "urn:service:token-type:user-email",
    }
    response = lean_http.post(f"{hub.url}/oauth/token", data=form)
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    response = lean_http.post(f"{hub.url}/oauth/device", data={"client_id": client.id})
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    for path in ("/oauth/revoke", "/oauth/introspect"):
        response = lean_http.post(hub.url + path, data={"client_id": client.id, "token": tokens["access_token"]})
        assert (response.status_code, response.json()["error"]) == (401, "invalid_client")


@pytest.mark.one_engine
def test_o20_deleted_secret_is_rejected_immediately(hub: RunningHub, client: Client, ada: User) -> None:
    async def forget(opened: Hub) -> None:
        await management.delete_secret(opened.oauth, client.app, SYSTEM)

    hub.call(forget)
    response = refresh(client, "hf_refresh_x")
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    public = Client(hub, client.app, None)
    assert "access_token" in tokens_for(public, ada)


def test_o21_reused_refresh_token_ends_the_family(hub: RunningHub, client: Client, ada: User) -> None:
    first = tokens_for(client, ada)["refresh_token"]
    second = refresh(client, first).json()
    with api(hub, second["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 200
    # The use is stored in the background.
    until(lambda: hub.call(_has_superseded_token))
    hub.clock.advance(seconds=59)
    assert refresh(client, first).status_code == 200, "within the grace"
    hub.clock.advance(seconds=2)
    assert refresh(client, first).json()["error"] == "invalid_grant"
    assert refresh(client, second["refresh_token"]).json()["error"] == "invalid_grant"
    with api(hub, second["access_token"]) as app:
        assert app.get("/oauth/userinfo").status_code == 401


async def _has_superseded_token(hub: Hub) -> bool:
    return await hub.db.one("SELECT 1 FROM refresh_tokens WHERE superseded_at IS NOT NULL") is not None


def test_o21_refresh_can_be_repeated_after_a_lost_answer(hub: RunningHub, client: Client, ada: User) -> None:
    """The successor was never used, so a repeated request is not a theft, no matter how late."""
    first = tokens_for(client, ada)["refresh_token"]
    lost = refresh(client, first).json()
    hub.clock.advance(seconds=3600)
    again = refresh(client, first).json()
    assert again["refresh_token"] == lost["refresh_token"]


def test_o22_twenty_concurrent_refreshes_have_one_successor(client: Client, ada: User) -> None:
    first = tokens_for(client, ada)["refresh_token"]
    answers = run_concurrently([lambda: refresh(client, first)] * 20)
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1


def test_o23_refresh_cannot_widen_the_scope(client: Client, ada: User) -> None:
    token = tokens_for(client, ada, scope="openid")["refresh_token"]
    for scope in ("openid profile", "profile", "webhooks", "nonsense"):
        assert refresh(client, token, scope=scope).json()["error"] == "invalid_scope"
    assert refresh(client, token, scope="openid").json()["scope"] == "openid"


@pytest.mark.one_engine
def test_o24_refresh_token_of_another_app_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    token = tokens_for(client, ada)["refresh_token"]
    stranger = create_app(hub, ada, refresh_tokens=True)
    assert refresh(stranger, token).json()["error"] == "invalid_grant"
    assert refresh(client, token).status_code == 200


@pytest.mark.one_engine
def test_basic_credentials_may_be_raw_or_form_encoded(hub: RunningHub, client: Client, ada: User) -> None:
    assert client.secret is not None
    for pair in (f"{client.id}:{client.secret}", f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"):
        header = {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        form = {
            "grant_type": "authorization_code",
            "code": code_for(client, ada),
            "redirect_uri": client.app.redirect_uris[0],
        }
        assert lean_http.post(f"{hub.url}/oauth/token", data=form, headers=header).status_code == 200


@pytest.mark.one_engine
@pytest.mark.parametrize("header", ["Basic nonsense", "Basic !!!", "Bearer hf_x", "Basic eDp5"])
def test_malformed_authorization_header_is_rejected(hub: RunningHub, header: str) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": "x"}
    response = lean_http.post(f"{hub.url}/oauth/token", data=form, headers={"authorization": header})
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    assert response.headers["www-authenticate"].startswith("Basic")
    assert response.headers["cache-control"] == "no-store"
