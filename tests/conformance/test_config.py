"""The Config plan of the OpenID Foundation's conformance suite, at an https address."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.running_hub import run_hub

ISSUER = "https://hub.example"


@pytest.fixture(scope="module")
def discovered(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("config")
    settings = settings_for(
        SqliteEngine(sqlite_template, folder).fresh_url(), folder, base_url=ISSUER, dynamic_registration="on"
    )
    with run_hub(settings) as hub:
        at = "http://{}:{}".format(*hub.address)
        response = httpx.get(f"{at}/.well-known/openid-configuration")
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
        yield {**response.json(), "keys": httpx.get(f"{at}/oauth/jwks").json()["keys"]}


def test_oidcc_discovery_endpoint_verification(discovered: dict[str, Any]) -> None:
    assert discovered["issuer"] == ISSUER
    addresses = {name: value for name, value in discovered.items() if re.search("_(endpoint|uri)$", name)}
    assert {"authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"} <= set(addresses)
    assert "registration_endpoint" in addresses
    assert all(value.startswith(f"{ISSUER}/") for value in addresses.values()), addresses
    assert discovered["response_types_supported"] == ["code"]
    assert discovered["subject_types_supported"] == ["public"]
    assert "RS256" in discovered["id_token_signing_alg_values_supported"]
    assert {"authorization_code", "refresh_token"} <= set(discovered["grant_types_supported"])
    assert "openid" in discovered["scopes_supported"]
    assert all(re.fullmatch(r"[\x21\x23-\x5b\x5d-\x7e]+", scope) for scope in discovered["scopes_supported"])
    assert {"sub", "iss", "name", "email"} <= set(discovered["claims_supported"])
    assert discovered["claims_parameter_supported"] is True
    assert discovered["request_parameter_supported"] is discovered["request_uri_parameter_supported"] is False
    assert discovered["code_challenge_methods_supported"] == ["S256"]
    kids = [key["kid"] for key in discovered["keys"]]
    assert (len(kids) > 0, len(set(kids))) == (True, len(kids))
    for key in discovered["keys"]:
        assert (key["kty"], key["use"], key["alg"]) == ("RSA", "sig", "RS256")
        assert not {"d", "p", "q", "dp", "dq", "qi"} & set(key), "no private parts"


def test_oidcc_rp_initiated_logout_discovery_endpoint_verification(discovered: dict[str, Any]) -> None:
    assert discovered["end_session_endpoint"] == f"{ISSUER}/oauth/logout"
