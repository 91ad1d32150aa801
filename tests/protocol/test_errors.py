"""Each surface has one shape of error, on all of its routes."""

from html import unescape

import pytest
from tests.bed.running_hub import RunningHub

from hubgate.server.edge.guard import BAD_CREDENTIAL

pytestmark = pytest.mark.one_engine


def test_api_errors_are_json_with_the_headers_clients_read(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/nothing")
    assert response.status_code == 404
    assert response.json() == {"error": response.headers["x-error-message"]}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]


def test_oauth_errors_have_their_own_shape(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.post("/oauth/jwks")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD"
    assert response.json()["error"] == "invalid_request"
    assert response.json()["error_description"] == "This address accepts GET, HEAD."


def test_pages_get_an_error_page(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/nothing/here")
    assert response.status_code == 404
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["x-request-id"] in response.text
    assert "Nothing here, or you don't have access." in unescape(response.text)


def test_files_get_plain_text(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/a/b/c/resolve/main")
    assert (response.status_code, response.headers["content-type"]) == (404, "text/plain; charset=utf-8")


def test_unexpected_error_is_a_clean_500_without_its_cause(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/test/broken")
    assert response.status_code == 500
    assert "SECRET" not in response.text
    assert "ValueError" in hub.log
    assert "SECRET" not in hub.log


def test_invalid_credential_is_rejected_with_the_text_clients_compare(hub: RunningHub) -> None:
    with hub.client() as client:
        assert client.get("/api/test/who").json() == {"kind": "ANONYMOUS"}
        for value in ("Bearer hf_nonsense", "Basic Zm9vOmJhcg==", "nonsense"):
            response = client.get("/api/test/who", headers={"authorization": value})
            assert response.status_code == 401
            assert response.headers["x-error-message"] == BAD_CREDENTIAL
            challenge = response.headers["www-authenticate"]
            error = 'error="invalid_token", error_description=' if value.startswith("Bearer") else "resource_metadata="
            # Another way of authentication is not a token (RFC 6750, section 3.1).
            assert challenge.startswith(f'Bearer realm="hubgate", {error}')
            assert f"{hub.url}/.well-known/oauth-protected-resource" in challenge


def test_session_cookie_is_ignored_by_the_api(hub: RunningHub) -> None:
    with hub.client(cookies={"token": "anything"}) as client:
        assert client.get("/api/test/who").json() == {"kind": "ANONYMOUS"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[1]", 422),
        (b'{"name": 1, "value": "x"}', 422),
        (b'{"name": "a", "value": "b", "more": 1}', 422),
        (b"", 400),
        (b"[" * 100_000, 422),
    ],
)
def test_unparseable_json_is_400_and_wrong_json_is_422(hub: RunningHub, body: bytes, status: int) -> None:
    with hub.client() as client:
        response = client.post("/api/test/write", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert response.json()["error"]


def test_unsupported_content_type_is_415(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.post("/api/test/write", content=b"x", headers={"content-type": "text/xml"})
    assert response.status_code == 415


def test_harmless_client_request_id_is_echoed(hub: RunningHub) -> None:
    with hub.client() as client:
        given = "0f8fad5b-d9cb-469f-a165-70867728950e"
        assert client.get("/healthz", headers={"x-amzn-trace-id": given}).headers["x-request-id"] == given
        assert client.get("/healthz", headers={"x-request-id": "a b<script>"}).headers["x-request-id"] != "a b<script>"
    assert given in hub.log


def test_cause_of_a_503_is_logged_and_not_sent(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/test/unavailable")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "2"
    assert "fire" not in response.text
    assert "OSError: the disk is on fire" in hub.log
    assert "x-error-code" not in response.headers


def test_clients_are_not_asked_to_repeat_a_change_with_an_unknown_outcome(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/test/unavailable?unknown=1")
    assert (response.status_code, response.headers["x-error-code"]) == (503, "OutcomeUnknown")
    assert "retry-after" not in response.headers


@pytest.mark.parametrize(
    ("path", "kind"), [("/healthz", "application/json"), ("/oauth/jwks", "application/json"), ("/", "text/html")]
)
def test_a_405_has_the_shape_of_its_surface(hub: RunningHub, path: str, kind: str) -> None:
    with hub.client() as client:
        response = client.put(path)
    assert response.status_code == 405
    assert response.headers["content-type"].startswith(kind)
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/x/y.git/nothing", "/datasets/x/y.git/nothing/else"])
def test_git_gets_plain_text_and_no_cookie(hub: RunningHub, path: str) -> None:
    with hub.client() as client:
        response = client.get(path)
    assert (response.status_code, response.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert "set-cookie" not in response.headers


def test_token_in_the_query_is_rejected(hub: RunningHub) -> None:
    with hub.client() as client:
        assert client.get("/api/test/who?access_token=hf_abc").status_code == 400
