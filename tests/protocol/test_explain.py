"""`error_uri`: a page that compares an app's request with its registration, for its owner only, without secrets."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import httpx
import pytest
from tests.bed import lean_http
from tests.bed.apps import REDIRECT, Client, approve, code_for, create_app, pkce_pair, redirect_parameters, tokens_for
from tests.bed.cimd_documents import store_document
from tests.bed.dump import dump
from tests.bed.error_explanations import explanation_page, path_of, row
from tests.bed.organizations import entries_of
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub

from hubgate.server.oauth.explain import store
from hubgate.server.oauth.explain.model import Refusal, SentParameters
from hubgate.server.oauth.explain.refusals import Refusals
from hubgate.server.resources import Hub
from hubgate.server.worker.sweep import Sweep

pytestmark = pytest.mark.one_engine

NOT_SHOWN = "Sign in as the app's owner."
NOTHING = "<h1>Nothing to show here</h1>"


def stored_refusals(hub: RunningHub, client: Client) -> list[Refusal]:
    async def work(opened: Hub) -> list[Refusal]:
        return await opened.db.read_long(lambda tx: store.of_app(tx, client.id, 0, 1000))

    return hub.call(work)


def test_every_error_of_an_endpoint_has_an_error_uri(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    wrong = (client.id, "wrong")
    asked: list[Callable[[], httpx.Response]] = [
        lambda: lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": "magic"}, auth=client.basic),
        lambda: lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": "refresh_token"}, auth=wrong),
        lambda: lean_http.post(f"{hub.url}/oauth/revoke", data={}, auth=client.basic),
        lambda: lean_http.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, auth=wrong),
    ]
    for ask in asked:
        answer = ask()
        body = answer.json()
        assert 400 <= answer.status_code < 500
        assert body["error_uri"] == f"{hub.url}/oauth/explain/{answer.headers['x-request-id']}"
        assert set(body) == {"error", "error_description", "error_uri"}


def test_no_error_uri_where_nothing_is_stored(hub: RunningHub) -> None:
    """Requests without a client, with an unknown client, or with one that has no owner here."""
    ada, client, document = create_user(hub, "ada"), create_app(hub, create_user(hub, "olga")), store_document(hub)
    token, fly = f"{hub.url}/oauth/token", {"grant_type": "fly"}
    asked: list[Callable[[], httpx.Response]] = [
        lambda: lean_http.post(token, content=b"x", headers={"content-type": "text/plain"}),
        lambda: lean_http.post(token, json=[1]),
        lambda: lean_http.get(token),
        lambda: lean_http.post(token, data=fly),
        lambda: lean_http.post(f"{token}?client_id={client.id}", data=fly),
        lambda: lean_http.post(token, data={**fly, "client_id": "nobody"}),
        lambda: lean_http.post(token, data={**fly, "client_id": document.id}),
        lambda: lean_http.get(f"{hub.url}/oauth/userinfo"),
    ]
    for ask in asked:
        answer = ask()
        assert 400 <= answer.status_code < 500
        assert set(answer.json()) == {"error", "error_description"}
    with browser_of(hub, ada) as browser:
        sent_back = redirect_parameters(browser.get(document.address(response_type="token")))
        assert sent_back["error"] == "unsupported_response_type"
        assert "error_uri" not in sent_back


def test_owner_finds_the_explained_request(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, olga) as owner:
        refused = lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": "fly"}, auth=client.basic)
        until(lambda: owner.get(refused.json()["error_uri"]).status_code == 200)
        sent_back = redirect_parameters(owner.get(client.address(scope="fly")))
        until(lambda: owner.get(sent_back["error_uri"]).status_code == 200)


def test_response_waits_until_the_refusal_is_stored(hub: RunningHub) -> None:
    """So that its page exists when the owner follows the link at once; a busy disk is not waited for long."""
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)

    async def refuse(opened: Hub, number: int) -> str:
        patient = Refusals(opened.db, opened.clock, hub.url, longest_wait=30)
        assert await patient.record(f"r-{number}", client.id, "token", "invalid_grant", "No.", SentParameters())
        return patient.error_uri(f"r-{number}")

    with browser_of(hub, olga) as owner:
        for number in range(5):
            address = hub.call(lambda opened, number=number: refuse(opened, number))  # type: ignore[misc]
            assert owner.get(address).status_code == 200


def test_errors_in_redirects_have_an_error_uri(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, ada) as browser, browser_of(hub, olga) as owner:
        answers = {
            "unsupported_response_type": browser.get(client.address(response_type="token")),
            "invalid_scope": browser.get(client.address(scope="openid webhooks")),
            "consent_required": browser.get(client.address(prompt="none")),
            "access_denied": approve(browser, client.address(), decision="deny"),
        }
        for error, sent in answers.items():
            answer = redirect_parameters(sent)
            assert answer["error"] == error
            assert f'<span class="mono">{error}</span></h1>' in explanation_page(
                owner, path_of(hub, answer["error_uri"])
            )
        by_form = browser.get(client.address(response_type="token", response_mode="form_post"))
        assert f'name="error_uri" value="{hub.url}/oauth/explain/' in by_form.text
        assert "error_uri" not in redirect_parameters(approve(browser, client.address()))


def test_local_error_page_links_to_the_explanation(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, olga) as owner:
        stopped = owner.get(client.address(redirect_uri="https://app.example/callbacks?x=1"))
        assert stopped.status_code == 400
        path = f"/oauth/explain/{stopped.headers['x-request-id']}"
        assert f'href="{path}"' in stopped.text
        page = explanation_page(owner, path)
        assert row(page, "redirect_uri") == ("https://app.example/callback<mark>s?x=1</mark>", REDIRECT)
        assert "asked to send you to an address it has not registered" in page
        cure = "Add https://app.example/callbacks?x=1 to the redirect URIs, or send the registered one."
        assert f'<p class="note measure">{cure}</p>' in page
        edit = f"/settings/applications/{client.id}#redirectUris"
        assert f'href="{edit}">Edit the redirect URIs</a>' in page
        assert 'id="redirectUris"' in owner.get(edit).text


def test_local_error_page_links_elsewhere_where_nothing_is_stored(hub: RunningHub) -> None:
    document = store_document(hub)
    with browser_of(hub) as visitor:
        unknown = visitor.get("/oauth/authorize?client_id=nobody")
        assert unknown.status_code == 400
        assert "/oauth/explain" not in unknown.text
        said = 'Check client_id under <a href="/settings/applications">Apps you build</a>'
        assert f"Did you build this app? {said}" in unknown.text
        wrong = visitor.get(document.address(redirect_uri="https://evil.example/"))
        assert wrong.status_code == 400
        checker = f"/docs/cimd?{urlencode({'url': document.id})}"
        assert "/oauth/explain" not in wrong.text
        assert f'<a href="{checker}">Check its document</a>' in wrong.text
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert f'name="url" type="url" value="{document.id}"' in browser.get(checker).text


def test_long_urls_wrap_between_their_parts(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga, redirect_uris=("https://app.example:8443/a/b",))
    with browser_of(hub, olga) as browser:
        stopped = browser.get(client.address(redirect_uri="https://app.example:8443/a"))
        page = explanation_page(browser, f"/oauth/explain/{stopped.headers['x-request-id']}")
    assert ">https://<wbr>app.example:<wbr>8443/<wbr>a" in page


def test_strangers_and_unknown_ids_get_the_same_answer(hub: RunningHub) -> None:
    ada, olga, bob = create_user(hub, "ada"), create_user(hub, "olga"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", olga, bob="write")
    mine, ours = create_app(hub, olga, name="Sesame"), create_app(hub, organization=acme, name="Sesame")
    for client in (mine, ours):
        with browser_of(hub, olga) as owner:
            refused = owner.get(client.address(scope="fly.away"))
            path = f"/oauth/explain/{refused.headers['x-request-id']}"
            assert "Sesame" in explanation_page(owner, path)
        for who in (None, ada, bob):
            with browser_of(hub, who) as browser:
                browser.get("/search")
                theirs, unknown = browser.get(path), browser.get("/oauth/explain/" + "0" * 32)
                assert theirs.status_code == unknown.status_code == 403
                if who is None:
                    assert NOT_SHOWN in theirs.text
                else:
                    assert NOTHING in theirs.text
                    assert f"Signed in as <bdi>@{who.name}</bdi>." in theirs.text
                    assert (
                        "reload this page in a moment: errors are stored with a delay of about a second." in theirs.text
                    )
                    assert "Otherwise sign in as the app's owner." in theirs.text
                for word in ("Sesame", client.id, "fly.away", "invalid_scope"):
                    assert word not in theirs.text
                assert same(theirs) == same(unknown)


def same(response: httpx.Response) -> tuple[str, set[str]]:
    """Without the parts that differ by request: its URL and the CSRF token."""
    text = re.sub(r"%2Foauth%2Fexplain%2F\w+|/oauth/explain/\w+|name=\"csrf\" value=\"[^\"]*\"", "", response.text)
    return text, set(response.headers)


def test_no_secret_is_stored(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, refresh_tokens=True)
    tokens = tokens_for(client, ada)
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
    secrets = {
        "code": code,
        "verifier": verifier,
        "secret": client.secret or "",
        "access": tokens["access_token"],
        "refresh": tokens["refresh_token"],
        "id": tokens["id_token"],
    }
    token = f"{hub.url}/oauth/token"
    everything = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "refresh_token": tokens["refresh_token"],
        "token": tokens["access_token"],
        "redirect_uri": f"https://evil.example/?code={code}&access_token={tokens['access_token']}",
        # Parameters in the wrong place.
        "scope": f"openid {tokens['access_token']} {client.secret}",
        "prompt": tokens["id_token"],
        client.secret or "": "x",
    }
    lean_http.post(token, data=everything, auth=client.basic)
    lean_http.post(token, data={**everything, "client_id": client.id, "client_secret": f"{client.secret}"})
    lean_http.post(token, data={**everything, "client_id": client.id}, auth=client.basic)
    lean_http.post(f"{hub.url}/oauth/revoke", data={**everything, "token": "x"}, auth=(client.id, "wrong"))
    with browser_of(hub, ada) as browser:
        browser.get(client.address(**everything, state=verifier, nonce=verifier, login_hint=ada.email))
        browser.get(client.address(**{**everything, "redirect_uri": REDIRECT}, state=verifier, id_token_hint=code))
        page = browser.get(client.address(**{**everything, "grant_type": code, "redirect_uri": REDIRECT}))
    assert page.status_code == 303
    until(lambda: len(stored_refusals(hub, client)) >= 6)
    dumped = hub.call(dump)
    assert b"evil.example" in dumped, "the dump is complete"
    for what, secret in secrets.items():
        # Without the last four characters of a client secret, which are stored to recognise it.
        assert secret[8:-4].encode() not in dumped, what
    assert str(stored_refusals(hub, client)).count(ada.email) == 0
    with browser_of(hub, olga) as owner:
        for refusal in stored_refusals(hub, client):
            shown = owner.get(f"/oauth/explain/{refusal.id}")
            assert shown.status_code == 200
            assert not [what for what, secret in secrets.items() if secret[8:-4] in shown.text]


def test_latest_fifty_refusals_of_an_app_are_stored(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client, other = create_app(hub, olga), create_app(hub, olga)

    def refuse(app: Client, number: int) -> None:
        headers = {"x-request-id": f"request-{number:04d}"}
        lean_http.get(hub.url + app.address(scope=f"number-{number}"), headers=headers)

    refuse(other, 9999)
    for number in range(60):
        refuse(client, number)
        until(lambda: any(refusal.id == f"request-{number:04d}" for refusal in stored_refusals(hub, client)))
        hub.clock.advance(4)
    assert {refusal.id for refusal in stored_refusals(hub, client)} == {
        f"request-{number:04d}" for number in range(10, 60)
    }
    assert len(stored_refusals(hub, other)) == 1
    with browser_of(hub, olga) as owner:
        listed = re.findall(r"/oauth/explain/(request-\d+)", owner.get(f"/settings/applications/{client.id}").text)
        assert listed == [f"request-{number:04d}" for number in range(59, 9, -1)]
        assert owner.get("/oauth/explain/request-0009").status_code == 403


def test_refusals_are_stored_for_seven_days(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, olga) as owner:
        refused = owner.get(client.address(scope="fly"))
        path = f"/oauth/explain/{refused.headers['x-request-id']}"
        explanation_page(owner, path)
        hub.clock.advance(7 * 86400 - 1)
        assert owner.get(path).status_code == 200
        hub.clock.advance(1)
        assert owner.get(path).status_code == 403
        assert "Rejected requests from this app appear here" in owner.get(f"/settings/applications/{client.id}").text
    assert len(stored_refusals(hub, client)) == 1
    hub.call(lambda opened: Sweep(opened.db, opened.clock).step())
    assert stored_refusals(hub, client) == []


def test_flood_of_refusals_is_limited(hub: RunningHub) -> None:
    """Anyone can cause refusals for any client id: 20 a minute are stored for an app, none for an unknown client."""
    olga = create_user(hub, "olga")
    client, quiet = create_app(hub, olga), create_app(hub, olga)
    for number in range(40):
        assert (
            redirect_parameters(lean_http.get(hub.url + client.address(scope=f"number-{number}")))["error"]
            == "invalid_scope"
        )
    for number in range(40):
        lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": "x", "client_id": f"nobody-{number}"})
    lean_http.get(hub.url + quiet.address(scope="fly"))
    until(lambda: len(stored_refusals(hub, quiet)) == 1)
    assert len(stored_refusals(hub, client)) == 20

    async def every(opened: Hub) -> int:
        row = await opened.db.one("SELECT count(*) AS rows FROM app_errors")
        return row["rows"] if row else -1

    assert hub.call(every) == 21
    hub.clock.advance(60)
    lean_http.get(hub.url + client.address(scope="fly"))
    until(lambda: len(stored_refusals(hub, client)) == 21)


def test_reused_request_id_refers_to_the_first_request(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    mine, theirs = create_app(hub, ada), create_app(hub, olga)
    headers = {"x-request-id": "chosen-by-caller"}
    lean_http.get(hub.url + theirs.address(scope="fly"), headers=headers)
    until(lambda: len(stored_refusals(hub, theirs)) == 1)
    lean_http.get(hub.url + mine.address(scope="swim"), headers=headers)
    lean_http.get(hub.url + mine.address(scope="walk"))
    until(lambda: len(stored_refusals(hub, mine)) == 1)
    with browser_of(hub, ada) as stranger, browser_of(hub, olga) as owner:
        assert stranger.get("/oauth/explain/chosen-by-caller").status_code == 403
        assert "fly" in owner.get("/oauth/explain/chosen-by-caller").text


def test_refusals_are_deleted_with_the_app_and_not_in_the_audit_log(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    acme = create_organization(hub, "acme", olga)
    hub.clock.advance(1)
    client = create_app(hub, organization=acme)
    lean_http.get(hub.url + client.address(scope="fly"))
    until(lambda: len(stored_refusals(hub, client)) == 1)
    assert sorted(entry["type"] for entry in entries_of(hub, acme)) == ["oauth.create_app", "org.create"]
    with browser_of(hub, olga) as owner:
        page = f"/oauth/explain/{stored_refusals(hub, client)[0].id}"
        edit = f"/organizations/acme/settings/applications/{client.id}#scopes"
        assert f'href="{edit}">Edit the scopes</a>' in owner.get(page).text


def test_client_id_in_the_query_is_ignored_at_the_token_endpoint(hub: RunningHub) -> None:
    """Only parameters that the endpoint reads identify the app."""
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    answer = lean_http.post(f"{hub.url}/oauth/token?client_id={client.id}", data={"grant_type": "x"})
    assert "error_uri" not in answer.json()
    lean_http.get(hub.url + client.address(scope="fly"))
    until(lambda: len(stored_refusals(hub, client)) == 1)


def test_non_ascii_header_is_rejected_cleanly(hub: RunningHub) -> None:
    for header in ("Basic \xe9\xe9", "Basic =", "Basic", "Basic YQ==", "Basic /w=="):
        headers = {b"authorization": header.encode("latin-1")}
        answer = lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": "refresh_token"}, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), header
