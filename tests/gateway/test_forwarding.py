"""The gateway forwards method, path, query, body and answer, and says clearly when it cannot."""

import socket
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.upstream import Upstream, UpstreamRequest, run_upstream
from tests.gateway.conftest import Stage

from hubgate.server.accounts.organizations import settings as organization_settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import StartupError

pytestmark = pytest.mark.one_engine

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions?a=1&a=2&b=%2F",
        "/v1/models/acme%2Ftiny",
        "/v1/",
        "/api/jobs/ada",
        "/api/jobs/ada?stage=RUNNING&label=k%3Dv",
        "/api/jobs/acme/65f0/cancel",
        "/api/scheduled-jobs/ada",
        "/api/scheduled-jobs/acme/65f0/labels",
    ],
)
def test_request_reaches_the_service_unchanged(stage: Stage, upstream: Upstream, path: str) -> None:
    with stage.client() as client:
        for method in METHODS:
            content = b"" if method == "GET" else b"x" * 1000
            answer = client.request(method, path, content=content)
            assert answer.json() == {"method": method, "path": path, "length": len(content)}
        assert client.head(path).status_code == 200
        assert upstream.last.method == "HEAD"


def test_hardware_list_is_forwarded(stage: Stage) -> None:
    with stage.client() as client:
        assert client.get("/api/jobs/hardware").json()["path"] == "/api/jobs/hardware"


def test_base_address_may_have_a_path(sqlite_template: Path, tmp_path: Path) -> None:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_upstream() as upstream:
        settings = settings_for(url, tmp_path, inference_upstream=f"{upstream.url}/deep/er/")
        with run_hub(settings) as hub, api(hub, create_token(hub, create_user(hub, "ada"))) as client:
            assert client.get("/v1/models").json()["path"] == "/deep/er/v1/models"


@pytest.mark.parametrize(
    "address", ["ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x#y", "http://x:99999"]
)
def test_invalid_base_address_prevents_the_start(tmp_path: Path, address: str) -> None:
    with pytest.raises(StartupError, match="HUBGATE_JOBS_UPSTREAM"):
        settings_for("", tmp_path, jobs_upstream=address)


def test_body_without_length_is_forwarded_in_chunks(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        assert client.post("/v1/files", content=iter([b"one", b"two"])).json()["length"] == 6
        assert upstream.last.header("transfer-encoding") == "chunked"


def test_status_and_body_of_the_service_are_returned(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        for status in (201, 404, 418, 429, 500, 503):
            upstream.answer = lambda request, status=status: request.reply({"n": status}, status, ("retry-after", "7"))
            answer = client.get("/v1/models")
            assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (status, {"n": status}, "7")


def test_answers_without_a_length_or_a_body_are_complete(stage: Stage, upstream: Upstream) -> None:
    def until_closed(request: UpstreamRequest) -> None:
        request.start(200, ("content-type", "text/plain"))
        request.write(b"to the end")

    with stage.client() as client:
        upstream.answer = until_closed
        assert client.get("/v1/x").text == "to the end"
        upstream.answer = lambda request: request.start(204)
        assert client.delete("/v1/x").status_code == 204


def test_interim_answers_are_skipped(stage: Stage, upstream: Upstream) -> None:
    def with_hints(request: UpstreamRequest) -> None:
        request.start(103, ("link", "</style.css>"))
        request.reply("final")

    upstream.answer = with_hints
    with stage.client() as client:
        answer = client.get("/v1/x")
    assert (answer.status_code, answer.json(), "link" in answer.headers) == (200, "final", False)


def test_former_name_is_replaced_by_the_current_one(stage: Stage, upstream: Upstream) -> None:
    """The path never contradicts the namespace in the signed identity."""
    hub = stage.hub
    # A name that was used only briefly is released.
    hub.clock.advance(30 * 24 * 3600)
    hub.call(lambda opened: organization_settings.rename(opened.accounts, stage.acme, "apex", SYSTEM))
    with stage.client() as client:
        moved = client.get("/api/jobs/acme/1/logs?tail=3")
        assert (moved.status_code, moved.headers["location"]) == (307, "/api/jobs/apex/1/logs?tail=3")
        for name in ("acme", "APEX", "%61pex"):
            assert client.post(f"/api/jobs/{name}/1/cancel").json()["path"] == "/api/jobs/apex/1/cancel"


@pytest.mark.parametrize("end", ["../eve/1", "..%2Feve", "%2e%2e/eve", "%252e%252e/eve", "x/..;a/..", r"..%5Ceve", "."])
def test_dot_segments_are_rejected(stage: Stage, upstream: Upstream, end: str) -> None:
    """A service that resolves them would leave the namespace that was checked."""
    with socket.create_connection(stage.hub.address, timeout=60) as connection:
        head = f"POST /api/jobs/ada/{end} HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {stage.token}\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 400 " in connection.recv(65_536).split(b"\r\n")[0]
    assert upstream.received == []


def test_redirects_are_returned_with_public_addresses(stage: Stage, upstream: Upstream) -> None:
    hub = stage.hub
    with stage.client() as client:
        for given, public in (
            (f"{upstream.url}/v1/models", f"{hub.url}/v1/models"),
            ("/v1/models", "/v1/models"),
            ("https://files.example/log", "https://files.example/log"),
        ):
            upstream.answer = lambda request, given=given: request.reply(None, 307, ("location", given))
            answer = client.get("/v1/old")
            assert (answer.status_code, answer.headers["location"]) == (307, public)
        following = f'<{upstream.url}/api/jobs/ada?cursor=2>; rel="next"'
        upstream.answer = lambda request: request.reply([], 200, ("link", following))
        assert client.get("/api/jobs/ada").links["next"]["url"] == f"{hub.url}/api/jobs/ada?cursor=2"
    assert len(upstream.received) == 4, "a redirect was followed"


def test_service_that_is_down_is_a_bad_gateway(stage: Stage, upstream: Upstream) -> None:
    upstream.shutdown()
    upstream.server_close()
    with stage.client() as client:
        answer = client.post("/v1/chat/completions", json={})
    assert answer.status_code == 502
    assert answer.json() == {"error": "The inference service is not reachable. Try again later."}
    assert "Traceback" not in stage.hub.log


def test_garbage_is_a_bad_gateway(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        for garbage in (b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, b""):
            upstream.answer = lambda request, garbage=garbage: request.write(garbage)
            assert client.get("/v1/models").status_code == 502


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-"])
def test_connection_that_the_service_resets_is_named_as_such(stage: Stage, upstream: Upstream, sent: bytes) -> None:
    def answer(request: UpstreamRequest) -> None:
        request.write(sent)
        request.break_connection()

    upstream.answer = answer
    with stage.client() as client:
        given = client.post("/v1/chat/completions", json={})
    assert given.status_code == 502
    message = "The connection to the inference service was lost before its response was complete. Try again later."
    assert given.json() == {"error": message}
    assert "ConnectionResetError" in stage.hub.log
    assert "Traceback" not in stage.hub.log


def test_rejected_identity_is_not_the_callers_fault(stage: Stage, upstream: Upstream) -> None:
    """On 401 existing clients drop a valid token."""
    message = "The inference service rejected the hub's identity. Notify the operator of this hub."
    for status in (401, 407):
        upstream.answer = lambda request, status=status: request.reply({}, status, ("www-authenticate", "Bearer"))
        with stage.client() as client:
            answer = client.get("/v1/models")
        assert (answer.status_code, answer.json()) == (502, {"error": message})
        assert "www-authenticate" not in answer.headers
    assert stage.hub.log.count(f"refused with 502: hubgate.server.errors.BadGateway: {message}") == 2


def test_user_whom_the_service_refuses_gets_its_answer(stage: Stage, upstream: Upstream) -> None:
    upstream.answer = lambda request: request.reply({"error": "not yours"}, 403)
    with stage.client() as client:
        answer = client.get("/api/jobs/acme/1")
    assert (answer.status_code, answer.json()) == (403, {"error": "not yours"})


@pytest.mark.limits(upstream_silence_seconds=0.3)
def test_silent_service_is_a_gateway_timeout(stage: Stage, upstream: Upstream) -> None:
    upstream.answer = UpstreamRequest.wait_until_closed
    with stage.client() as client:
        answer = client.post("/api/jobs/ada", json={})
    assert answer.status_code == 504
    assert answer.json() == {"error": "The jobs service did not respond in time."}
    assert upstream.last.closed.wait(60)


def test_hub_without_services_answers_501(sqlite_hub: RunningHub) -> None:
    ada = create_user(sqlite_hub, "ada")
    with api(sqlite_hub, create_token(sqlite_hub, ada)) as client, api(sqlite_hub) as anyone:
        for path, setting in (
            ("/v1/chat/completions", "HUBGATE_INFERENCE_UPSTREAM"),
            ("/api/jobs/ada", "HUBGATE_JOBS_UPSTREAM"),
            ("/api/scheduled-jobs/ada/1/run", "HUBGATE_JOBS_UPSTREAM"),
        ):
            answer = client.post(path, json={})
            assert (answer.status_code, setting in answer.json()["error"]) == (501, True)
            assert anyone.post(path, json={}).status_code == 401


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/jobs/ada"])
def test_browser_apps_may_send_any_header(stage: Stage, upstream: Upstream, path: str) -> None:
    """An SDK in a page adds headers of its own."""
    asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
    with stage.client() as client:
        answer = client.options(
            path, headers={**asked, "access-control-request-headers": "authorization,x-stainless-os"}
        )
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-headers"] == "Authorization, *"
    assert answer.headers["access-control-allow-origin"] == "*"
    assert upstream.received == [], "the hub answers for the service"


def test_path_outside_the_gateway_is_not_forwarded(stage: Stage, upstream: Upstream) -> None:
    with stage.client() as client:
        for path in ("/api/jobs", "/api/jobs//ada", "/api/scheduled-jobs", "/v2/models"):
            answer: httpx.Response = client.post(path)
            assert answer.status_code in (404, 405), path
    assert upstream.received == []


def test_name_of_the_hardware_list_is_not_a_namespace(stage: Stage) -> None:
    """An account with the name could not list its jobs: the path is that of the hardware list."""
    with browser_of(stage.hub, stage.ada) as browser:
        assert submit(browser, "/organizations/new", name="Hardware", fullname="").status_code == 422
