"""O48: an id_token_hint is accepted only if one of the hub's keys signed it, now or earlier, with its algorithm."""

import base64
import hashlib
import hmac
import json
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from tests.bed.apps import Client, create_app, redirect_parameters, tokens_for
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.clock import SECOND
from hubgate.server.oauth.keys.model import LEAD, OVERLAP
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine


def encoded(value: bytes | dict[str, Any]) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(part: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=="))
    return value


def forgeries(hub: RunningHub, client: Client, good: str) -> dict[str, str]:
    head, body, signature = good.split(".")
    header, claims = decoded(head), decoded(body)
    public = httpx.get(f"{hub.url}/oauth/jwks").json()["keys"][0]
    modulus = base64.urlsafe_b64decode(public["n"] + "==")
    own_key = rsa.generate_private_key(65537, 2048)

    def hs256(key: bytes) -> str:
        start = f"{encoded({**header, 'alg': 'HS256'})}.{body}"
        return f"{start}.{encoded(hmac.digest(key, start.encode(), hashlib.sha256))}"

    def rs256(header: dict[str, Any], claims: dict[str, Any]) -> str:
        start = f"{encoded(header)}.{encoded(claims)}"
        return f"{start}.{encoded(own_key.sign(start.encode(), padding.PKCS1v15(), SHA256()))}"

    return {
        "alg none": f"{encoded({'alg': 'none'})}.{body}.",
        "alg none with the key": f"{encoded({**header, 'alg': 'none'})}.{body}.",
        "alg None": f"{encoded({**header, 'alg': 'None'})}.{body}.{signature}",
        "HS256 with the modulus": hs256(modulus),
        "HS256 with the document": hs256(json.dumps(public).encode()),
        "HS256 with the client secret": hs256((client.secret or "").encode()),
        "another key": rs256(header, claims),
        "another key, named": rs256({**header, "kid": "mine", "jwk": public}, claims),
        "no signature": f"{head}.{body}.",
        "another body": f"{head}.{encoded({**claims, 'sub': '0' * 24})}.{signature}",
        "RS256 named ES256": f"{encoded({**header, 'alg': 'ES256'})}.{body}.{signature}",
        "RS256 named EdDSA": f"{encoded({**header, 'alg': 'EdDSA'})}.{body}.{signature}",
        "another issuer": rs256(header, {**claims, "iss": "https://evil.example"}),
        "no token": "x",
        "deep": f"{encoded(b'[' * 5000)}.{body}.{signature}",
        "no object": f"{encoded(b'[]')}.{body}.{signature}",
        "not base64": f"{head}.{body}.***",
    }


def test_o48_only_the_hubs_signature_is_accepted(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    good = tokens_for(client, ada)["id_token"]
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(browser.get(client.address(id_token_hint=good, prompt="none")))
        for name, hint in forgeries(hub, client, good).items():
            for prompt in ("none", None):
                answer = redirect_parameters(browser.get(client.address(id_token_hint=hint, prompt=prompt)))
                assert answer["error"] == "invalid_request", name


def test_o48_header_does_not_choose_the_algorithm(hub: RunningHub) -> None:
    """A key has one algorithm. A signature of another key, or of another length, is rejected like any other."""
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    names = ("ES256", "EdDSA")
    clients = {name: create_app(hub, olga, id_token_signed_response_alg=name) for name in names}
    tokens = {name: tokens_for(client, ada)["id_token"] for name, client in clients.items()}
    with browser_of(hub, ada) as browser:

        def error_for(name: str, hint: str) -> str | None:
            answer = browser.get(clients[name].address(id_token_hint=hint, prompt="none"))
            return redirect_parameters(answer).get("error")

        for name, other in (names, names[::-1]):
            head, body, signature = tokens[name].split(".")
            header, foreign = decoded(head), decoded(tokens[other].split(".")[0])
            assert error_for(name, tokens[name]) is None
            for forged in (
                f"{encoded({**header, 'alg': other})}.{body}.{signature}",
                f"{encoded({**header, 'alg': 'RS256'})}.{body}.{signature}",
                f"{encoded({**header, 'kid': foreign['kid']})}.{body}.{signature}",
                f"{encoded(foreign)}.{body}.{signature}",
                f"{head}.{body}.{signature[:-4]}",
                f"{head}.{body}.{encoded(bytes(64))}",
                f"{head}.{body}.",
            ):
                assert error_for(name, forged) == "invalid_request", forged


def published(hub: RunningHub) -> set[str]:
    with hub.client() as anyone:
        return {key["kid"] for key in anyone.get("/oauth/jwks").json()["keys"]}


def test_o48_retired_key_is_accepted_and_revoked_key_is_not(hub: RunningHub) -> None:
    """A thief of a key could name any user with it."""
    ada, client = create_user(hub, "ada"), create_app(hub)
    good = tokens_for(client, ada)["id_token"]
    kid = decoded(good.split(".")[0])["kid"]

    async def rotate(opened: Hub) -> None:
        await opened.oauth.keys.rotate()

    async def revoke(opened: Hub) -> None:
        await opened.oauth.keys.revoke(kid)

    for _ in range(2):
        hub.call(rotate)
        hub.clock.advance(seconds=(LEAD + OVERLAP) / SECOND)
    assert kid not in published(hub)
    address = client.address(id_token_hint=good, prompt="none")
    with browser_of(hub, ada) as browser:
        assert "code" in redirect_parameters(browser.get(address))
        for name, hint in forgeries(hub, client, good).items():
            assert redirect_parameters(browser.get(client.address(id_token_hint=hint)))["error"] == "invalid_request", (
                name
            )
        hub.call(revoke)
        assert redirect_parameters(browser.get(address))["error"] == "invalid_request"
