"""The service learns who calls from a short-lived signed identity only; neither side's private headers pass."""

import socket

import pytest
from tests.bed.apps import create_app, redirect_parameters, tokens_for
from tests.bed.people import browser_of, create_token
from tests.bed.upstream import Upstream, verified_claims
from tests.gateway.conftest import Stage

from hubgate.server.clock import SECOND

pytestmark = pytest.mark.one_engine


def test_identity_is_signed_for_the_service(stage: Stage, upstream: Upstream) -> None:
    hub, now = stage.hub, stage.hub.clock.now // SECOND
    common = {"iss": hub.url, "aud": upstream.url, "sub": stage.ada.id, "preferred_username": "ada"}
    own = {"namespace": "ada", "namespace_id": stage.ada.id, "namespace_type": "user"}
    acme = {"namespace": "acme", "namespace_id": stage.acme.id, "namespace_type": "org"}
    with stage.client() as client:
        for path, headers, scope, namespace in (
            ("/v1/models", {}, "inference-api", own),
            ("/v1/models", {"x-hf-bill-to": "acme"}, "inference-api", acme),
            ("/v1/models", {"x-hf-bill-to": "ADA"}, "inference-api", own),
            ("/api/jobs/hardware", {}, "jobs", own),
            ("/api/jobs/ada", {}, "jobs", own),
            ("/api/jobs/acme/1", {"x-hf-bill-to": "ada"}, "jobs", acme),
            ("/api/scheduled-jobs/ACME", {}, "jobs", acme),
        ):
            assert client.get(path, headers=headers).status_code == 200
            claims = verified_claims(hub.url, upstream.last.token)
            assert claims == {**common, **namespace, "scope": scope, "iat": now, "exp": now + 60}


def test_identity_never_has_more_than_the_scope_of_the_service(stage: Stage, upstream: Upstream) -> None:
    app = create_app(stage.hub, stage.ada, scopes=("openid", "email", "manage-repos", "jobs"))
    token = tokens_for(app, stage.ada, scope="openid email manage-repos jobs")["access_token"]
    with stage.client(token) as client:
        assert client.get("/api/jobs/ada").status_code == 200
    assert verified_claims(stage.hub.url, upstream.last.token)["scope"] == "jobs"


def test_signed_identity_is_not_a_credential_at_the_hub(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        client.get("/v1/models")
    with stage.client(upstream.last.token) as service:
        for path in ("/api/whoami-v2", "/v1/models", "/oauth/userinfo"):
            assert service.get(path).status_code == 401


def test_credentials_and_proxy_headers_are_not_forwarded(stage: Stage, upstream: Upstream) -> None:
    private = {
        "cookie": "token=secret",
        "x-forwarded-for": "10.0.0.1",
        "x-forwarded-user": "root",
        "x_forwarded_user": "root",
        "forwarded": "for=10.0.0.1",
        "x-real-ip": "10.0.0.1",
        "proxy-authorization": "Basic x",
        "te": "trailers",
        "keep-alive": "timeout=5",
        "connection": "close, x-private",
        "x-private": "1",
        "x-hf-bill-to": "acme",
        "origin": "https://app.example",
        "sec-fetch-site": "cross-site",
    }
    passed = {"content-type": "application/json", "accept": "text/event-stream", "x-stainless-lang": "python"}
    with stage.client() as client:
        answer = client.post("/v1/chat/completions", content=b"{}", headers={**private, **passed})
    request = upstream.last
    assert request.names & (set(private) - {"connection"}) == set()
    assert request.header("connection") == "close"
    assert {name: request.header(name) for name in passed} == passed
    assert request.header("host") == upstream.url.removeprefix("http://")
    assert request.header("x-request-id") == answer.headers["x-request-id"]
    assert stage.token not in str(request.headers)


@pytest.mark.parametrize(
    "name",
    [
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x-original-url",
        "x-original-method",
        "x-rewrite-url",
        "remote-user",
        "x-remote-user",
        "x-auth-request-user",
        "x-authenticated-user",
        "x-webauth-user",
        "x-ms-client-principal",
        "x-amzn-oidc-identity",
        "x-goog-authenticated-user-email",
        "x-ssl-client-verify",
        "x-client-cert",
        "x-envoy-original-path",
        "x-cluster-client-ip",
        "cf-connecting-ip",
        "client-ip",
    ],
)
def test_headers_that_frameworks_trust_are_not_forwarded(stage: Stage, upstream: Upstream, name: str) -> None:
    """A reader could turn GET into DELETE, leave the path that was checked, or name another user."""
    with stage.client() as client:
        assert client.get("/api/jobs/acme", headers={name: "DELETE"}).status_code == 200
    assert name not in upstream.last.names


def test_token_is_removed_from_every_header(stage: Stage, upstream: Upstream) -> None:
    """Some SDKs send the key twice."""
    with stage.client() as client:
        for name, value in (
            ("x-api-key", stage.token),
            ("api-key", f"Bearer {stage.token}"),
            ("x-goog-api-key", "own"),
        ):
            assert client.get("/v1/models", headers={name: value}).status_code == 200
            assert stage.token not in str(upstream.last.headers)
            assert (name in upstream.last.names) == (value == "own")


def test_signed_identity_is_rejected_as_id_token_hint(stage: Stage, upstream: Upstream) -> None:
    """It is signed with the key of ID tokens, but its service is not an app that the user signed in to."""
    app = create_app(stage.hub, stage.ada, scopes=("openid",))
    id_token = tokens_for(app, stage.ada, scope="openid")["id_token"]
    with stage.client() as client:
        client.get("/v1/models")
    with browser_of(stage.hub, stage.ada) as browser:
        for hint, key in ((id_token, "code"), (upstream.last.token, "error")):
            address = app.address(scope="openid", id_token_hint=hint, prompt="none")
            assert key in redirect_parameters(browser.get(address))


def test_headers_that_concern_the_hubs_origin_are_not_returned(stage: Stage, upstream: Upstream) -> None:
    unwanted = {
        "set-cookie": "token=stolen; Path=/",
        "access-control-allow-origin": "https://evil.example",
        "access-control-allow-credentials": "true",
        "content-security-policy": "default-src *",
        "strict-transport-security": "max-age=0",
        "clear-site-data": '"*"',
        "cross-origin-opener-policy": "unsafe-none",
        "cache-control": "public, max-age=3600",
        "x-frame-options": "ALLOWALL",
        "www-authenticate": "Basic",
        "keep-alive": "timeout=5",
        "x-hop": "1",
        "x-request-id": "forged-request-id",
    }
    listed = [*unwanted.items(), ("connection", "close, x-hop"), ("x-error-code", "JobNotFound")]
    upstream.answer = lambda request: request.reply({}, 404, *listed)
    with stage.client() as client:
        answer = client.get("/api/jobs/ada/1")
        assert client.cookies.get("token") is None
    for name, value in unwanted.items():
        assert value not in answer.headers.get_list(name), name
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    assert "sandbox" not in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-error-code"] == "JobNotFound"


def test_namespace_header_must_be_unambiguous(stage: Stage, upstream: Upstream) -> None:
    """The hub would check one value and the service could use the other."""
    head = f"GET /v1/models HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {stage.token}\r\n"
    with socket.create_connection(stage.hub.address, timeout=60) as connection:
        connection.sendall(f"{head}x-hf-bill-to: ada\r\nx-hf-bill-to: acme\r\n\r\n".encode())
        assert b" 400 " in connection.recv(65_536).split(b"\r\n")[0]
    assert upstream.received == []


def test_token_in_the_address_is_rejected(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        assert client.get(f"/v1/models?access_token={stage.token}").status_code == 400
    assert upstream.received == []


def test_log_contains_no_credential(stage: Stage, upstream: Upstream) -> None:
    other = create_token(stage.hub, stage.ada, name="other")
    with stage.client(other) as client:
        client.get("/v1/models")
    assert other not in stage.hub.log
    assert upstream.last.token not in stage.hub.log
