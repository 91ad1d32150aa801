"""`POST /api/credentials/revoke`: anyone may report leaked tokens, and learns nothing about them."""

import json

import httpx
import pytest
from tests.bed import lean_http
from tests.bed.people import api, create_token, create_user, link_in, mails_to
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.tokens.text import TokenKind, new_token

PATH = "/api/credentials/revoke"
WHOAMI = "/api/whoami-v2"


def report(hub: RunningHub, *credentials: str) -> httpx.Response:
    return lean_http.post(hub.url + PATH, json={"credentials": credentials})


@pytest.mark.one_engine
def test_reported_token_is_revoked_and_its_owner_notified(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    leaked = create_token(hub, ada, "read", "leaked")
    hub.clock.advance(1)
    kept = create_token(hub, ada, "read", "kept")
    hub.clock.advance(1)
    with api(hub, leaked) as one, api(hub, kept) as other:
        assert one.get(WHOAMI).status_code == 200
        assert report(hub, "nonsense", leaked, leaked).status_code == 202
        assert one.get(WHOAMI).status_code == 401
        assert other.get(WHOAMI).status_code == 200
    told = mails_to(hub, ada.email, 3)
    assert [mail["Subject"] for mail in told] == ["New token: leaked", "New token: kept", "Token revoked: leaked"]
    assert link_in(told[-1]) == "/settings/tokens"
    assert leaked not in hub.log


@pytest.mark.one_engine
def test_answer_does_not_reveal_which_tokens_exist(hub: RunningHub) -> None:
    leaked = create_token(hub, create_user(hub, "ada"))
    invented, _ = new_token(TokenKind.PERSONAL, hub.clock())
    answers = [report(hub, leaked), report(hub, leaked), report(hub, invented), report(hub, "x"), report(hub)]
    varying = {"x-request-id", "date"}
    seen = {
        (answer.status_code, answer.content, tuple(item for item in answer.headers.items() if item[0] not in varying))
        for answer in answers
    }
    assert len(seen) == 1
    assert answers[0].status_code == 202
    assert answers[0].content == b""


@pytest.mark.one_engine
def test_reporters_own_token_is_neither_required_nor_checked(hub: RunningHub) -> None:
    headers = {"authorization": "Bearer hf_wrong"}
    assert lean_http.post(hub.url + PATH, json={"credentials": []}, headers=headers).status_code == 202


def test_a_thousand_tokens_may_be_reported_at_once(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    real = [create_token(hub, ada, "read", f"number {number}") for number in range(3)]
    noise = [new_token(TokenKind.PERSONAL, hub.clock())[0] for _ in range(997)]
    assert report(hub, *noise, *real).status_code == 202
    for token in real:
        with api(hub, token) as client:
            assert client.get(WHOAMI).status_code == 401


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"credentials": ["x"] * 1001}, 422),
        ({"credentials": "hf_x"}, 422),
        ({"credentials": [7]}, 422),
        ({"credentials": None}, 422),
        ({}, 422),
        ([], 422),
        ({"credentials": [], "more": 1}, 422),
        ({"credentials": ["x" * 300_000]}, 413),
        ({"credentials": ["é🔑 "]}, 202),
    ],
)
def test_malformed_reports_are_rejected(hub: RunningHub, body: object, status: int) -> None:
    assert lean_http.post(hub.url + PATH, json=body).status_code == status


@pytest.mark.one_engine
@pytest.mark.parametrize("content", ["", "{", "\ufeff{}", '{"credentials":["\\ud800"]}'])
def test_body_that_is_not_json_is_rejected(hub: RunningHub, content: str) -> None:
    assert lean_http.post(hub.url + PATH, content=content).status_code in (400, 422)


@pytest.mark.one_engine
def test_form_is_rejected(hub: RunningHub) -> None:
    """So that another site's page cannot send one without a preflight."""
    token = create_token(hub, create_user(hub, "ada"))
    body = json.dumps({"credentials": [token]})
    assert lean_http.post(hub.url + PATH, content=body, headers={"content-type": "text/plain"}).status_code == 415
    assert lean_http.post(hub.url + PATH, data={"credentials": token}).status_code == 415
    with api(hub, token) as client:
        assert client.get(WHOAMI).status_code == 200
