"""`error_uri`: what an app sent beside what is registered, for its owner alone, and nothing secret in it."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.bed.apps import REDIRECT, Client, answer_of, approve, code_for, make_app, proof, tokens_for
from tests.bed.dump import dump
from tests.bed.organizations import entries_of
from tests.bed.people import browser_of, make_organization, make_user
from tests.bed.processes import until
from tests.bed.running import RunningHub

from hubgate.server.app import Hub
from hubgate.server.oauth.explain import store
from hubgate.server.oauth.explain.model import Refusal
from hubgate.server.worker.sweep import Sweep

NOT_SHOWN = "Sign in as the app's owner."


def kept(hub: RunningHub, client: Client) -> list[Refusal]:
    async def work(opened: Hub) -> list[Refusal]:
        return await opened.db.read_long(lambda tx: store.of_app(tx, client.id, 0, 1000))

    return hub.call(work)


def path_of(hub: RunningHub, error_uri: str) -> str:
    assert error_uri.startswith(f"{hub.url}/oauth/explain/")
    return error_uri.removeprefix(hub.url)


def explained(browser: httpx.Client, path: str) -> str:
    """The owner's page, once it is there: it is written beside the answer."""
    until(lambda: browser.get(path).status_code == 200)
    return browser.get(path).text


def row(page: str, label: str) -> tuple[str, str]:
    """Sent and registered, with nothing but the marks left in."""
    found = re.search(rf'<th scope="row">{re.escape(label)}[^<]*</th><td>(.*?)</td><td>(.*?)</td>', page, re.DOTALL)
    assert found, page
    sent, registered = (re.sub(r"</?(?!/?mark)[a-z][^>]*>", " ", side) for side in found.groups())
    return " ".join(sent.split()), " ".join(registered.split())


def test_every_error_of_an_endpoint_carries_its_address(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    client = make_app(hub, olga)
    wrong = (client.id, "wrong")
    asked: list[Callable[[], httpx.Response]] = [
        lambda: httpx.post(f"{hub.url}/oauth/token", data={"grant_type": "magic"}, auth=client.basic),
        lambda: httpx.post(f"{hub.url}/oauth/token", data={"grant_type": "refresh_token"}, auth=wrong),
        lambda: httpx.post(f"{hub.url}/oauth/token", content=b"x", headers={"content-type": "text/plain"}),
        lambda: httpx.post(f"{hub.url}/oauth/token", json=[1]),
        lambda: httpx.post(f"{hub.url}/oauth/revoke", data={}, auth=client.basic),
        lambda: httpx.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, auth=wrong),
        lambda: httpx.get(f"{hub.url}/oauth/token"),
    ]
    for ask in asked:
        answer = ask()
        body = answer.json()
        assert 400 <= answer.status_code < 500
        assert body["error_uri"] == f"{hub.url}/oauth/explain/{answer.headers['x-request-id']}"
        assert set(body) == {"error", "error_description", "error_uri"}


def test_errors_sent_back_carry_it_too(hub: RunningHub) -> None:
    ada, olga = make_user(hub, "ada"), make_user(hub, "olga")
    client = make_app(hub, olga)
    with browser_of(hub, ada) as browser, browser_of(hub, olga) as owner:
        answers = {
            "unsupported_response_type": browser.get(client.address(response_type="token")),
            "invalid_scope": browser.get(client.address(scope="openid webhooks")),
            "consent_required": browser.get(client.address(prompt="none")),
            "access_denied": approve(browser, client.address(), decision="deny"),
        }
        for error, sent in answers.items():
            answer = answer_of(sent)
            assert answer["error"] == error
            assert f'<span class="mono">{error}</span></h1>' in explained(owner, path_of(hub, answer["error_uri"]))
        by_form = browser.get(client.address(response_type="token", response_mode="form_post"))
        assert f'name="error_uri" value="{hub.url}/oauth/explain/' in by_form.text
        assert "error_uri" not in answer_of(approve(browser, client.address()))


def test_the_local_page_leads_there(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    client = make_app(hub, olga)
    with browser_of(hub, olga) as owner:
        stopped = owner.get(client.address(redirect_uri="https://app.example/callbacks?x=1"))
        assert stopped.status_code == 400
        path = f"/oauth/explain/{stopped.headers['x-request-id']}"
        assert f'href="{path}"' in stopped.text
        page = explained(owner, path)
        assert row(page, "redirect_uri") == ("https://app.example/callback<mark>s?x=1</mark>", REDIRECT)
        assert "asked us to send you to an address it has not registered" in page
        assert f'href="/settings/applications/{client.id}">Edit</a>' in page


@pytest.mark.parametrize(
    ("changes", "label", "sent", "registered"),
    [
        (
            {"redirect_uri": "https://app.example/Callback"},
            "redirect_uri",
            "https://app.example/<mark>C</mark>allback",
            "https://app.example/<mark>c</mark>allback http://localhost/cb",
        ),
        (
            {"redirect_uri": "https://app.example/"},
            "redirect_uri",
            "https://app.example/",
            "https://app.example/<mark>callback</mark> http://localhost/cb",
        ),
        (
            {"scope": "openid fly offline_access"},
            "scope",
            "openid <mark>fly</mark> offline_access",
            "read-repos email profile openid",
        ),
        ({"response_type": "token"}, "response_type", "<mark>token</mark>", "code"),
        ({"response_type": None}, "response_type", "<mark>not sent</mark>", "code"),
        ({"code_challenge": None, "code_challenge_method": None}, "PKCE", "<mark>no code_challenge</mark>", "required"),
        ({"code_challenge_method": "plain"}, "PKCE", "<mark>code_challenge by plain</mark>", "required"),
    ],
    ids=range(7),
)
def test_what_differs_is_marked(
    hub: RunningHub, changes: dict[str, str | None], label: str, sent: str, registered: str
) -> None:
    olga = make_user(hub, "olga")
    client = make_app(hub, olga, confidential=False, redirect_uris=(REDIRECT, "http://localhost/cb"))
    _, challenge = proof()
    with browser_of(hub, olga) as owner:
        address = client.address(**{"code_challenge": challenge, "code_challenge_method": "S256", **changes})
        answer = owner.get(address)
        page = explained(owner, f"/oauth/explain/{answer.headers['x-request-id']}")
        found = row(page, label)
        assert found[0] == sent
        assert found[1].startswith(registered)
        assert page.count("<mark>") == (found[0] + found[1]).count("<mark>"), "nothing else is marked"


def test_what_differs_at_the_token_endpoint(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    confidential, public = make_app(hub, olga), make_app(hub, olga, confidential=False)
    token = f"{hub.url}/oauth/token"
    grant = {"grant_type": "authorization_code", "code": "x", "redirect_uri": REDIRECT}
    with browser_of(hub, olga) as owner:

        def page_of(answer: httpx.Response) -> str:
            return explained(owner, path_of(hub, answer.json()["error_uri"]))

        alone = page_of(httpx.post(token, data={**grant, "client_id": confidential.id}))
        assert row(alone, "client") == ("<mark>client ID alone</mark>", "an app with a secret")
        wrong = page_of(httpx.post(token, data=grant, auth=(confidential.id, "wrong")))
        assert row(wrong, "client") == ("<mark>client ID and secret, by Basic</mark>", "another secret")
        needless = page_of(httpx.post(token, json={**grant, "client_id": public.id, "client_secret": "mine"}))
        assert row(needless, "client") == ("<mark>client ID and secret, in the body</mark>", "an app without a secret")
        kind = page_of(httpx.post(token, data={"grant_type": "password"}, auth=confidential.basic))
        assert row(kind, "grant_type")[0] == "<mark>password</mark>"
        code = page_of(httpx.post(token, data=grant, auth=confidential.basic))
        assert "<mark>" not in code
        assert "Nothing differs from what is registered now." in code
        assert "Also sent: <code>code</code>. Their values are not kept." in code


def test_it_compares_with_what_is_registered_now(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    client = make_app(hub, olga)
    with browser_of(hub, olga) as owner:
        answer = owner.get(client.address(redirect_uri="https://app.example/new"))
        path = f"/oauth/explain/{answer.headers['x-request-id']}"
        assert "<mark>" in explained(owner, path)

        async def add(opened: Hub) -> None:
            sql = "UPDATE apps SET redirect_uris = :uris"
            await opened.db.write(lambda tx: tx.exec(sql, {"uris": '["https://app.example/new"]'}))

        hub.call(add)
        assert "<mark>" not in owner.get(path).text


def test_strangers_see_nothing_and_unknown_ids_look_the_same(hub: RunningHub) -> None:
    ada, olga, bob = make_user(hub, "ada"), make_user(hub, "olga"), make_user(hub, "bob")
    acme = make_organization(hub, "acme", olga, bob="write")
    mine, ours = make_app(hub, olga, name="Sesame"), make_app(hub, organization=acme, name="Sesame")
    for client in (mine, ours):
        with browser_of(hub, olga) as owner:
            refused = owner.get(client.address(scope="fly"))
            path = f"/oauth/explain/{refused.headers['x-request-id']}"
            assert "Sesame" in explained(owner, path)
        for who in (None, ada, bob):
            with browser_of(hub, who) as browser:
                browser.get("/docs/api")
                theirs, unknown = browser.get(path), browser.get("/oauth/explain/" + "0" * 32)
                assert theirs.status_code == unknown.status_code == 403
                assert NOT_SHOWN in theirs.text
                for word in ("Sesame", client.id, "fly", "invalid_scope"):
                    assert word not in theirs.text
                assert same(theirs) == same(unknown)


def same(response: httpx.Response) -> tuple[str, set[str]]:
    """Without what is this request's own: its address and the CSRF value."""
    text = re.sub(r"%2Foauth%2Fexplain%2F\w+|/oauth/explain/\w+|name=\"csrf\" value=\"[^\"]*\"", "", response.text)
    return text, set(response.headers)


def test_nothing_secret_is_kept(hub: RunningHub) -> None:
    ada, olga = make_user(hub, "ada"), make_user(hub, "olga")
    client = make_app(hub, olga, refresh_tokens=True)
    tokens = tokens_for(client, ada)
    verifier, challenge = proof()
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
        # Where they do not belong.
        "scope": f"openid {tokens['access_token']} {client.secret}",
        "prompt": tokens["id_token"],
        client.secret or "": "x",
    }
    httpx.post(token, data=everything, auth=client.basic)
    httpx.post(token, data={**everything, "client_id": client.id, "client_secret": f"{client.secret}"})
    httpx.post(token, data={**everything, "client_id": client.id}, auth=client.basic)
    httpx.post(f"{hub.url}/oauth/revoke", data={**everything, "token": "x"}, auth=(client.id, "wrong"))
    with browser_of(hub, ada) as browser:
        browser.get(client.address(**everything, state=verifier, nonce=verifier, login_hint=ada.email))
        browser.get(client.address(**{**everything, "redirect_uri": REDIRECT}, state=verifier, id_token_hint=code))
        page = browser.get(client.address(**{**everything, "grant_type": code, "redirect_uri": REDIRECT}))
    assert page.status_code in (303, 400)
    until(lambda: len(kept(hub, client)) >= 6)
    dumped = hub.call(dump)
    assert b"evil.example" in dumped, "the dump is complete"
    for what, secret in secrets.items():
        # Without the four characters that are kept of a client secret to recognise it by.
        assert secret[8:-4].encode() not in dumped, what
    assert str(kept(hub, client)).count(ada.email) == 0
    with browser_of(hub, olga) as owner:
        for refusal in kept(hub, client):
            shown = owner.get(f"/oauth/explain/{refusal.id}").text
            assert not [what for what, secret in secrets.items() if secret[8:-4] in shown]


def test_the_latest_fifty_of_an_app_are_kept(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    client, other = make_app(hub, olga), make_app(hub, olga)

    def refuse(app: Client, number: int) -> None:
        headers = {"x-request-id": f"request-{number:04d}"}
        httpx.get(hub.url + app.address(scope=f"number-{number}"), headers=headers)

    refuse(other, 9999)
    for number in range(60):
        refuse(client, number)
        until(lambda: any(refusal.id == f"request-{number:04d}" for refusal in kept(hub, client)))
        hub.clock.advance(4)
    assert {refusal.id for refusal in kept(hub, client)} == {f"request-{number:04d}" for number in range(10, 60)}
    assert len(kept(hub, other)) == 1
    with browser_of(hub, olga) as owner:
        listed = re.findall(r"/oauth/explain/(request-\d+)", owner.get(f"/settings/applications/{client.id}").text)
        assert listed == [f"request-{number:04d}" for number in range(59, 9, -1)]
        assert owner.get("/oauth/explain/request-0009").status_code == 403


def test_they_are_kept_for_seven_days(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    client = make_app(hub, olga)
    with browser_of(hub, olga) as owner:
        refused = owner.get(client.address(scope="fly"))
        path = f"/oauth/explain/{refused.headers['x-request-id']}"
        explained(owner, path)
        hub.clock.advance(7 * 86400 - 1)
        assert owner.get(path).status_code == 200
        hub.clock.advance(1)
        assert owner.get(path).status_code == 403
        assert "What this app is refused appears here" in owner.get(f"/settings/applications/{client.id}").text
    assert len(kept(hub, client)) == 1
    hub.call(lambda opened: Sweep(opened.db, opened.clock).step())
    assert kept(hub, client) == []


def test_a_flood_fills_nothing_and_slows_nothing(hub: RunningHub) -> None:
    """Anyone can have requests refused, in anyone's name: 20 a minute are kept of an app, none of what is no app."""
    olga = make_user(hub, "olga")
    client, quiet = make_app(hub, olga), make_app(hub, olga)
    for number in range(40):
        assert answer_of(httpx.get(hub.url + client.address(scope=f"number-{number}")))["error"] == "invalid_scope"
    for number in range(40):
        httpx.post(f"{hub.url}/oauth/token", data={"grant_type": "x", "client_id": f"nobody-{number}"})
    httpx.get(hub.url + quiet.address(scope="fly"))
    until(lambda: len(kept(hub, quiet)) == 1)
    assert len(kept(hub, client)) == 20

    async def every(opened: Hub) -> int:
        row = await opened.db.one("SELECT count(*) AS rows FROM app_errors")
        return row["rows"] if row else -1

    assert hub.call(every) == 21
    hub.clock.advance(60)
    httpx.get(hub.url + client.address(scope="fly"))
    until(lambda: len(kept(hub, client)) == 21)


def test_a_chosen_request_id_names_what_it_named_first(hub: RunningHub) -> None:
    ada, olga = make_user(hub, "ada"), make_user(hub, "olga")
    mine, theirs = make_app(hub, ada), make_app(hub, olga)
    headers = {"x-request-id": "chosen-by-caller"}
    httpx.get(hub.url + theirs.address(scope="fly"), headers=headers)
    until(lambda: len(kept(hub, theirs)) == 1)
    httpx.get(hub.url + mine.address(scope="swim"), headers=headers)
    httpx.get(hub.url + mine.address(scope="walk"))
    until(lambda: len(kept(hub, mine)) == 1)
    with browser_of(hub, ada) as stranger, browser_of(hub, olga) as owner:
        assert stranger.get("/oauth/explain/chosen-by-caller").status_code == 403
        assert "fly" in owner.get("/oauth/explain/chosen-by-caller").text


def test_they_go_with_the_app_and_are_no_matter_of_the_audit_log(hub: RunningHub) -> None:
    olga = make_user(hub, "olga")
    acme = make_organization(hub, "acme", olga)
    client = make_app(hub, organization=acme)
    httpx.get(hub.url + client.address(scope="fly"))
    until(lambda: len(kept(hub, client)) == 1)
    assert [entry["type"] for entry in entries_of(hub, acme)] == ["org.create", "oauth.create_app"]
    with browser_of(hub, olga) as owner:
        page = f"/oauth/explain/{kept(hub, client)[0].id}"
        assert f'href="/organizations/acme/settings/applications/{client.id}">Edit' in owner.get(page).text


def test_a_client_in_the_query_alone_is_nobody_at_the_token_endpoint(hub: RunningHub) -> None:
    """Only what the endpoint itself would read says whose mistake it is."""
    olga = make_user(hub, "olga")
    client = make_app(hub, olga)
    answer = httpx.post(f"{hub.url}/oauth/token?client_id={client.id}", data={"grant_type": "x"})
    assert parse_qs(urlsplit(answer.json()["error_uri"]).query) == {}
    httpx.get(hub.url + client.address(scope="fly"))
    until(lambda: len(kept(hub, client)) == 1)


def test_a_header_that_is_no_ascii_is_refused_and_breaks_nothing(hub: RunningHub) -> None:
    for header in ("Basic \xe9\xe9", "Basic =", "Basic", "Basic YQ==", "Basic /w=="):
        headers = {b"authorization": header.encode("latin-1")}
        answer = httpx.post(f"{hub.url}/oauth/token", data={"grant_type": "refresh_token"}, headers=headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), header
