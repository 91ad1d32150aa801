"""O53: logs contain no code, token, secret, verifier or password, wherever in the request it was sent."""

import ast
import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.bed.apps import create_app
from tests.bed.issued_secrets import collect_issued_secrets
from tests.bed.people import create_user, submit
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.logs import redacted
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

SERVER = Path(__file__).parents[2] / "src/hubgate/server"
SECRETS = {
    "token": "hf_oauth_AbCdEfGhIjKlMnOpQr",
    "password": "correct-horse-battery",
    "code": "SplxlOBeZQQYbYS6WxSbIA",
    "verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    "secret": "whsec_C2FVsBQIhrscChlQIMV",
}


def test_o53_secrets_in_requests_are_not_logged(hub: RunningHub) -> None:
    with hub.client() as client:
        for name, secret in SECRETS.items():
            client.get(f"/api/test/who?{name}={secret}", headers={"authorization": f"Bearer {secret}"})
            client.get(f"/nothing/{secret}")
            client.get(f"/api/test/part/{secret}/rest/{secret}")
            client.post("/api/test/echo", data={name: secret}, headers={"cookie": f"token={secret}"})
            client.post("/api/test/write", json={"name": secret, "value": [secret]})
            client.post("/api/test/write", json={"name": secret, "value": secret})
            client.get("/healthz", headers={"referer": f"https://app.example/?{name}={secret}", "user-agent": secret})
        assert client.get("/api/test/broken").status_code == 500
    until(lambda: hub.log.count('"status"') >= 7 * len(SECRETS) + 1)
    for secret in (*SECRETS.values(), "hunter2SECRET"):
        assert secret not in hub.log


def test_o53_issued_secrets_are_not_logged(hub: RunningHub) -> None:
    given = collect_issued_secrets(hub)
    with hub.client() as client:
        # Rejected, mistyped, sent to the wrong route or with the wrong method.
        for secret in given.values():
            for door in ("reset", "verify", "change-email", "setup", "invitations", "nothing", "login/x", "api/x"):
                client.get(f"/{door}/{quote(secret)}")
                client.post(f"/{door}/{quote(secret)}", data={"password": secret})
                client.delete(f"/{door}/{quote(secret)}x")
            client.get("/login", params={"next": f"/reset/{secret}"}, headers={"referer": f"{hub.url}/reset/{secret}"})
            submit(client, "/login", username=secret, password=secret)
            submit(client, "/reset", email=f"{secret}@example.org")
            client.cookies.set("token", quote(secret))
            client.get("/settings/profile")
            client.cookies.clear()
    assert_no_secret(hub, given)
    logged = {line["route"] for line in map(json.loads, hub.log.splitlines()) if "route" in line}
    doors = {f"/{door}/{{secret}}" for door in ("reset", "verify", "change-email", "setup", "invitations")}
    assert doors | {"/login", "/join", "/logout", "(no route)"} <= logged


IN_BODY = (
    "code",
    "refresh_token",
    "client_secret",
    "code_verifier",
    "token",
    "client_id",
    "scope",
    "device_code",
    "user_code",
    "subject_token",
    "unknown",
)
OAUTH = ("/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/device")


def test_o53_rejected_app_requests_log_no_secrets(hub: RunningHub) -> None:
    """In any part of the request, and with any other error."""
    given = collect_issued_secrets(hub)
    sent = 0
    with hub.client() as client:
        for secret in given.values():
            for path in OAUTH:
                everywhere = dict.fromkeys(IN_BODY, secret)
                requests: list[dict[str, Any]] = [{"data": {"grant_type": grant, **everywhere}} for grant in GRANTS]
                requests += [
                    {"data": {"grant_type": secret, "token": secret}, "auth": (secret, secret)},
                    {"data": {"grant_type": "refresh_token", "refresh_token": [secret, secret]}},
                    {"json": {"grant_type": "refresh_token", "refresh_token": {secret: secret}}},
                    {"json": {secret: secret, "grant_type": [secret, secret]}},
                    {"content": f'{{"code": "{secret}'.encode(), "headers": {"content-type": "application/json"}},
                    {"content": secret.encode(), "headers": {"content-type": "text/plain"}},
                    {"params": everywhere, "headers": {"authorization": f"Bearer {secret}"}},
                ]
                for request in requests:
                    assert client.post(path, **request).status_code in (400, 401, 429), request
                    sent += 1
            for method in ("GET", "POST"):
                answer = client.request(method, "/oauth/authorize", params=dict.fromkeys((*IN_BODY, "state"), secret))
                assert answer.status_code == 400
                client.request(method, "/oauth/userinfo", headers={"authorization": f"Bearer {secret}x"})
            away = client.get("/oauth/device", params={"user_code": secret})
            client.get(away.headers["location"], headers={"referer": f"{hub.url}/oauth/device?user_code={secret}"})
            client.post("/oauth/device/verify", data={"user_code": secret, "decision": secret})
    until(lambda: hub.log.count('"route":"/oauth/') >= sent)
    assert_no_secret(hub, given)


def test_o53_failing_app_requests_log_no_secrets(hub: RunningHub) -> None:
    """The error is logged with all its causes, and none of them repeats the request."""
    given = collect_issued_secrets(hub)

    async def break_it(opened: Hub) -> None:
        for table in ("app_tokens", "refresh_tokens", "codes"):
            await opened.db.write(lambda tx, table=table: tx.exec(f"DROP TABLE {table}"))  # type: ignore[misc]

    client = create_app(hub, create_user(hub, "eve"), refresh_tokens=True)
    hub.call(break_it)
    given |= {"secret of the app": client.secret or ""}
    forms = [
        ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": given["refresh token"]}),
        ("/oauth/token", {"grant_type": "authorization_code", "code": given["open code"], "code_verifier": "v" * 43}),
        ("/oauth/revoke", {"token": given["refresh token"]}),
        ("/oauth/introspect", {"token": given["access token"]}),
    ]
    for path, form in forms:
        answer = client.post(path, form)
        assert (answer.status_code, answer.json()["error"]) == (500, "server_error"), answer.text
    until(lambda: hub.log.count("unexpected error") >= len(forms))
    assert_no_secret(hub, given)


def assert_no_secret(hub: RunningHub, given: dict[str, str]) -> None:
    for what, secret in given.items():
        for spelling in (secret, quote(secret), quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
            assert spelling not in hub.log, what


def test_o53_every_line_has_its_request_id(hub: RunningHub) -> None:
    with hub.client() as client:
        response = client.get("/api/test/broken")

    def lines() -> list[str]:
        return [line for line in hub.log.splitlines() if response.headers["x-request-id"] in line]

    until(lambda: len(lines()) >= 2)
    assert len(lines()) == 2, "the error and the request"


@pytest.mark.one_engine
@pytest.mark.parametrize(
    "text",
    [
        "GET /x?code=s3cr3t&state=1",
        "Authorization: Bearer s3cr3t-s3cr3t",
        "Authorization: Basic czNjcjN0OnMzY3IzdA==s3cr3t",
        "postgresql://hub:p@ss/s3cr3t@db/x",
        "hf_s3cr3tabc",
        "hfcs_s3cr3tabc",
        "hfrs_s3cr3tabc",
        "client_secret=s3cr3t",
        "whsec_s3cr3tabc",
        "code_verifier=s3cr3t",
        '{"password":"s3cr3t"}',
        "{'client_secret': 's3cr3t'}",
        "password: s3cr3t",
        "token%3Ds3cr3t",
        "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.s3cr3t",
        "csrf=s3cr3t",
        "/oauth/device?user_code=s3cr3t",
        "hf_device_s3cr3tabc",
    ],
)
def test_o53_secrets_are_redacted_from_texts(text: str) -> None:
    assert "s3cr3t" not in redacted(text)


def test_o53_harmless_text_is_not_redacted() -> None:
    text = "process 12 ended with status 1; state=1 at http://127.0.0.1:8000 for bob@example.org"
    assert redacted(text) == text


def test_o53_redacted_line_is_still_json(hub: RunningHub) -> None:
    with hub.client() as client:
        client.get("/api/test/broken")
    until(lambda: '"status":500' in hub.log)
    assert [json.loads(line) for line in hub.log.splitlines()]


def test_o53_hubs_own_messages_are_not_redacted() -> None:
    """Refusals are stored, and shown to an app's owner, after the same redaction."""
    sentence = re.compile(r"[A-Z][^\n]* [^\n]*[.!]")
    eaten = {}
    for path in SERVER.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings]
        for text in (str(node.value) for node in constants):
            if sentence.fullmatch(text) and redacted(text) != text:
                eaten[text] = redacted(text)
    assert eaten == {}
