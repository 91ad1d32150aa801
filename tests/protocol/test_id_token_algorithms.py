"""The algorithm of an app's ID tokens: chosen in its settings or its metadata, verified with the published keys."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from tests.bed.apps import Client, create_app, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.engines import Engine
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.registration import open_to_registration, register, self_registered
from tests.bed.running_hub import RunningHub

from hubgate.server.oauth.keys.model import LEAD
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

PKCE = {"code_challenge_method": "S256"}


def part(token: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(decoded(token.split(".")[number]))
    return found


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def keys_of(hub: RunningHub) -> dict[str, dict[str, str]]:
    with hub.client() as anyone:
        return {key["kid"]: key for key in anyone.get("/oauth/jwks").json()["keys"]}


def verify(hub: RunningHub, token: str, algorithm: str) -> None:
    """Verify a signature with the published key; an exception if it is wrong."""
    header, (message, _, signature) = part(token, 0), token.rpartition(".")
    key = keys_of(hub)[header["kid"]]
    assert (header["alg"], key["alg"], key["use"]) == (algorithm, algorithm, "sig")
    signed = decoded(signature)
    assert len(signed) == 64
    if algorithm == "EdDSA":
        assert (key["kty"], key["crv"]) == ("OKP", "Ed25519")
        Ed25519PublicKey.from_public_bytes(decoded(key["x"])).verify(signed, message.encode())
        return
    assert (key["kty"], key["crv"], len(decoded(key["x"])), len(decoded(key["y"]))) == ("EC", "P-256", 32, 32)
    x, y, r, s = (int.from_bytes(value) for value in (decoded(key["x"]), decoded(key["y"]), signed[:32], signed[32:]))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(encode_dss_signature(r, s), message.encode(), ec.ECDSA(SHA256()))


def half_hash(token: str, algorithm: str) -> str:
    digest = (hashlib.sha512 if algorithm == "EdDSA" else hashlib.sha256)(token.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
def test_id_tokens_have_the_algorithm_of_the_apps_settings(hub: RunningHub, algorithm: str) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, refresh_tokens=True)
    assert part(tokens_for(client, ada)["id_token"], 0)["alg"] == "RS256"
    with api(hub, create_token(hub, olga)) as owner:
        changed = owner.patch(
            f"/api/settings/applications/{client.id}", json={"idTokenSignedResponseAlg": algorithm}
        ).json()
        assert changed["idTokenSignedResponseAlg"] == algorithm
        refused = owner.patch(f"/api/settings/applications/{client.id}", json={"idTokenSignedResponseAlg": "HS256"})
        assert refused.status_code == 422
    body = tokens_for(client, ada)
    for _ in range(2):
        verify(hub, body["id_token"], algorithm)
        assert part(body["id_token"], 1)["at_hash"] == half_hash(body["access_token"], algorithm)
        body = client.post(
            "/oauth/token", {"grant_type": "refresh_token", "refresh_token": body["refresh_token"]}
        ).json()
    with browser_of(hub, ada) as browser:
        address = client.address(id_token_hint=body["id_token"], prompt="none")
        assert "code" in redirect_parameters(browser.get(address)), "the hub accepts its own token"
    assert {key["alg"] for key in keys_of(hub).values()} == {"RS256", algorithm}, "created when first needed"


def test_exchanged_id_token_has_the_apps_algorithm(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_exchange_app(hub, acme, id_token_signed_response_alg="ES256")
    verify(hub, exchange_token(client, ada.email)["id_token"], "ES256")


def test_form_sets_the_algorithm(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    page = f"/settings/applications/{client.id}"
    form = {"name": "Notebook", "redirectUris": client.app.redirect_uris[0], "redirectMatch": "exact"}
    with browser_of(hub, olga) as browser, api(hub, create_token(hub, olga)) as owner:
        submit(browser, page, page, **form, tokenLifetime="3600", idTokenSignedResponseAlg="EdDSA")
        shown = owner.get(f"/api/settings/applications/{client.id}").json()
        assert shown["idTokenSignedResponseAlg"] == "EdDSA"
        assert '<option value="EdDSA" selected>' in browser.get(page).text


def test_document_names_the_algorithm(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    for named, used in (("EdDSA", "EdDSA"), ("HS256", "RS256"), (["ES256"], "RS256")):
        client = store_document(hub, id_token_signed_response_alg=named)
        assert part(tokens_for(client, ada, scope="openid")["id_token"], 0)["alg"] == used


def test_registration_names_the_algorithm(engine: Engine, tmp_path: Path) -> None:
    with open_to_registration(engine, tmp_path) as hub:
        ada, client = create_user(hub, "ada"), self_registered(hub, id_token_signed_response_alg="ES256")
        verify(hub, tokens_for(client, ada, scope="openid")["id_token"], "ES256")
        for named in ("none", "PS512"):
            answer = register(hub, id_token_signed_response_alg=named).json()
            assert answer["id_token_signed_response_alg"] == "RS256", "replaced, as the answer says"


def test_each_algorithm_has_keys_of_its_own(hub: RunningHub) -> None:
    """Rotating or revoking a key leaves the other algorithms alone."""
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    clients = {name: create_app(hub, olga, id_token_signed_response_alg=name) for name in ("RS256", "ES256", "EdDSA")}

    def kid(client: Client) -> str:
        found: str = part(tokens_for(client, ada)["id_token"], 0)["kid"]
        return found

    first = {name: kid(client) for name, client in clients.items()}

    async def rotate(opened: Hub) -> str:
        return (await opened.oauth.keys.rotate("ES256")).kid

    async def revoke(opened: Hub) -> None:
        await opened.oauth.keys.revoke(first["EdDSA"])

    rotated = hub.call(rotate)
    assert {name: kid(client) for name, client in clients.items()} == first, "published before it signs"
    hub.clock.advance(seconds=LEAD / 1_000_000)
    hub.call(revoke)
    now = {name: kid(client) for name, client in clients.items()}
    assert (now["RS256"], now["ES256"]) == (first["RS256"], rotated)
    assert now["EdDSA"] != first["EdDSA"]
    verify(hub, tokens_for(clients["EdDSA"], ada)["id_token"], "EdDSA")
    assert first["EdDSA"] not in keys_of(hub)
