"""Security headers on every answer; CORS exactly where browser apps call, never on pages."""

from pathlib import Path

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

OPEN = ["/api/openapi.json", "/api/nothing", "/oauth/jwks", "/.well-known/nothing", "/v1/nothing", "/a/b/raw/main/x"]
CLOSED = ["/", "/nothing", "/docs/api", "/healthz"]


@pytest.mark.parametrize("path", OPEN)
def test_browser_apps_may_call(hub: RunningHub, path: str) -> None:
    with hub.client() as client:
        response = client.get(path, headers={"origin": "https://app.example"})
    assert response.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in response.headers
    assert "X-Error-Message" in response.headers["access-control-expose-headers"]


@pytest.mark.parametrize("path", CLOSED)
def test_pages_are_closed_to_other_origins(hub: RunningHub, path: str) -> None:
    with hub.client() as client:
        assert "access-control-allow-origin" not in client.get(path).headers
        preflight = client.options(
            path, headers={"origin": "https://x.example", "access-control-request-method": "GET"}
        )
    assert "access-control-allow-methods" not in preflight.headers


def test_preflight_names_what_may_be_called(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.options(
            "/api/test/write", headers={"origin": "https://app.example", "access-control-request-method": "POST"}
        )
    assert response.status_code == 204
    assert response.headers["access-control-allow-methods"] == "POST"
    assert response.headers["access-control-allow-origin"] == "*"
    allowed = response.headers["access-control-allow-headers"]
    assert allowed == "Authorization, Content-Type, MCP-Protocol-Version, Range, X-Request-Id"


def test_pages_carry_a_strict_policy(hub: RunningHub) -> None:
    with hub.client() as client:
        headers = client.get("/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "strict-transport-security" not in headers


def test_https_base_url_sets_secure_headers(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, base_url="https://hub.example")) as hub:
        address = f"http://{hub.settings.host}:{hub.settings.port}"
        with hub.client() as client:
            response = client.get(f"{address}/")
    assert "strict-transport-security" in response.headers
    assert "secure" in response.headers["set-cookie"].lower()


def test_head_answers_like_get_without_a_body(on_each_server: RunningHub) -> None:
    with on_each_server.client() as client:
        head, get = client.head("/oauth/jwks"), client.get("/oauth/jwks")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("path", ["/nothing", "/api/nothing", "/api/test/broken", "/api/test/unavailable"])
def test_rejected_head_request_logs_no_error(on_each_server: RunningHub, path: str) -> None:
    with on_each_server.client() as client:
        head, get = client.head(path), client.get(path)
    assert head.status_code == get.status_code
    assert head.content == b""
    assert "ClientDisconnect" not in on_each_server.log


def test_static_files_are_cached_permanently_and_named_by_content(hub: RunningHub) -> None:
    with hub.client() as client:
        page = client.get("/").text
        style = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
        response = client.get(style)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
        assert response.headers["content-type"] == "text/css; charset=utf-8"
        assert client.get(style.replace("/static/", "/static/0")).status_code == 404
        assert client.get("/static/x/..%2f..%2fapp.py").status_code == 404


def test_path_that_is_a_page_and_an_endpoint_has_cors_for_the_endpoint_only(hub: RunningHub) -> None:
    asking = {"origin": "https://app.example", "access-control-request-method": "POST"}
    with hub.client() as client:
        response = client.options("/oauth/test", headers=asking)
        assert response.headers["access-control-allow-methods"] == "POST"
        assert response.headers["access-control-allow-origin"] == "*"
        assert "x-frame-options" not in response.headers
        assert "access-control-allow-origin" not in client.get("/oauth/test").headers
        assert client.post("/oauth/test").headers["access-control-allow-origin"] == "*"


def test_browser_app_can_read_a_404(hub: RunningHub) -> None:
    asking = {"origin": "https://app.example", "access-control-request-method": "PUT"}
    with hub.client() as client:
        assert "PUT" in client.options("/api/nothing", headers=asking).headers["access-control-allow-methods"]
        assert client.put("/api/nothing").headers["access-control-allow-origin"] == "*"
