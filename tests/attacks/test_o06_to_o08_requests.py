"""O6-O8 and the authorize half of O17: unknown clients, missing or weak PKCE, parameters sent twice."""

from urllib.parse import quote

import pytest
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.cimd_documents import store_document
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

_, CHALLENGE = pkce_pair()


def test_o6_unknown_client_is_rejected_without_a_redirect(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for client_id in ("nobody", "0" * 36, "", "hubgate-cli", "' OR 1=1 --", "a\x00b", "é"):
            response = browser.get(client.address(client_id=client_id, redirect_uri="https://evil.example/"))
            assert (response.status_code, "location" in response.headers) == (400, False), client_id


def refused(client: Client, **parameters: str | None) -> dict[str, str]:
    with client.hub.client() as visitor:
        answer = redirect_parameters(visitor.get(client.address(**parameters)))
    assert (answer["state"], answer["iss"]) == ("s t&te", client.hub.url)
    assert "code" not in answer
    return answer


def test_o7_missing_pkce_is_rejected_where_it_is_required(hub: RunningHub) -> None:
    public, strict = create_app(hub, confidential=False), create_app(hub, require_pkce=True)
    for client in (public, strict, store_document(hub)):
        assert refused(client, scope="openid")["error"] == "invalid_request"


O8_WEAK: list[dict[str, str | None]] = [
    {"code_challenge": CHALLENGE, "code_challenge_method": "plain"},
    {"code_challenge": CHALLENGE},
    {"code_challenge": CHALLENGE, "code_challenge_method": ""},
    {"code_challenge": CHALLENGE, "code_challenge_method": "s256"},
    {"code_challenge_method": "S256"},
    {"code_challenge": CHALLENGE[:-1], "code_challenge_method": "S256"},
    {"code_challenge": CHALLENGE + "=", "code_challenge_method": "S256"},
    {"code_challenge": CHALLENGE[:-1] + "+", "code_challenge_method": "S256"},
]


def test_o8_weak_pkce_is_rejected(hub: RunningHub) -> None:
    for client in (create_app(hub), create_app(hub, confidential=False)):
        for sent in O8_WEAK:
            assert refused(client, **sent)["error"] == "invalid_request", sent


ONCE = (
    "state nonce scope response_type response_mode code_challenge code_challenge_method prompt max_age login_hint "
    "id_token_hint ui_locales anything"
)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_o17_repeated_parameter_is_rejected(hub: RunningHub, method: str) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for name in ONCE.split():
            address = client.address(**{name: "code" if name == "response_type" else "1"})
            for second in ("1", "2", ""):
                answer = redirect_parameters(browser.request(method, f"{address}&{name}={second}"))
                assert (answer["error"], answer["iss"]) == ("invalid_request", hub.url), name
                assert ("state" in answer) == (name != "state"), "of two states neither is the one"


@pytest.mark.parametrize("name", ["client_id", "redirect_uri"])
def test_o17_repeated_client_id_or_redirect_uri_is_rejected_without_a_redirect(hub: RunningHub, name: str) -> None:
    client = create_app(hub)
    value = quote({"client_id": client.id, "redirect_uri": client.app.redirect_uris[0]}[name], safe="")
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for second in (value, "evil", ""):
            response = browser.get(f"{client.address()}&{name}={second}")
            assert (response.status_code, "location" in response.headers) == (400, False)
            response = browser.post(client.address(), data={name: second})
            assert (response.status_code, "location" in response.headers) == (400, False)


def test_o17_resource_audience_and_org_ids_may_repeat(hub: RunningHub) -> None:
    client = create_app(hub)
    more = f"&resource={hub.url}&resource={hub.url}/&audience=c&audience=d&orgIds=e&orgIds=f"
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert "code" in redirect_parameters(approve(browser, client.address() + more))
