"""The page behind `error_uri` marks for the owner where a request differs from the registration."""

import httpx
import pytest
from tests.bed import lean_http
from tests.bed.apps import REDIRECT, Client, code_for, create_app, pkce_pair, tokens_for
from tests.bed.error_explanations import NO_DIFFERENCE, explanation_page, path_of, row
from tests.bed.exchange import GRANT, create_exchange_app, send_exchange
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine


def test_port_on_loopback_is_not_marked(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    uris = ("https://app.example/callback", "http://127.0.0.1/callback")
    client = create_app(hub, olga, redirect_uris=uris)
    origin = create_app(hub, olga, redirect_uris=("https://app.example/callback",), redirect_match="origin")
    with browser_of(hub, olga) as owner:

        def page_of(app: Client, given: str) -> str:
            answer = owner.get(app.address(redirect_uri=given))
            return explanation_page(owner, f"/oauth/explain/{answer.headers['x-request-id']}")

        here = page_of(client, "http://localhost:3000/callback")
        assert row(here, "redirect_uri") == (
            "http://<mark>localhost</mark>:3000/callback",
            "http://<mark>127.0.0.1</mark>/callback https://app.example/callback",
        )
        different = "localhost and 127.0.0.1 are different; the port does not matter."
        added = "Add http://localhost:3000/callback to the redirect URIs, or send a registered one."
        assert f"{added} {different}</p>" in here
        port = page_of(client, "https://app.example:8443/callback")
        assert row(port, "redirect_uri")[0] == "https://app.example<mark>:8443</mark>/callback"
        plain = page_of(origin, "http://app.example/elsewhere?x=1")
        assert row(plain, "redirect_uri") == (
            "http://app.example/elsewhere?x=1",
            "http<mark>s</mark>://app.example/callback",
        ), "any path is free"
        assert "http is for localhost, 127.0.0.1 and [::1]. Send the registered one.</p>" in plain


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
            {"scope": "openid jobs offline_access"},
            "scope",
            "openid <mark>jobs</mark> offline_access",
            "read-repos email profile openid",
        ),
        ({"response_type": "token"}, "response_type", "<mark>token</mark>", "code"),
        ({"response_type": None}, "response_type", "<mark>not sent</mark>", "code"),
        ({"code_challenge": None, "code_challenge_method": None}, "PKCE", "<mark>no code_challenge</mark>", "required"),
        ({"code_challenge_method": "plain"}, "PKCE", "<mark>code_challenge with method plain</mark>", "required"),
        (
            {"code_challenge_method": None},
            "PKCE",
            "<mark>code_challenge, no method sent (that means plain)</mark>",
            "required",
        ),
        ({"code_challenge": None}, "PKCE", "<mark>no code_challenge, but the method S256</mark>", "required"),
        ({"code_challenge": "short"}, "PKCE", "<mark>code_challenge with method S256</mark>", "required"),
        ({"prompt": "none login"}, "prompt", "<mark>none login</mark>", "consent login none select_account"),
        ({"response_mode": "fragment"}, "response_mode", "<mark>fragment</mark>", "query form_post"),
        ({"max_age": "soon"}, "max_age", "<mark>soon</mark>", "see the error above"),
        ({"id_token_hint": "x"}, "id_token_hint", "<mark>sent; its value is not stored</mark>", "see the error above"),
    ],
    ids=range(14),
)
def test_differences_are_marked(
    hub: RunningHub, changes: dict[str, str | None], label: str, sent: str, registered: str
) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga, confidential=False, redirect_uris=(REDIRECT, "http://localhost/cb"))
    _, challenge = pkce_pair()
    with browser_of(hub, olga) as owner:
        address = client.address(**{"code_challenge": challenge, "code_challenge_method": "S256", **changes})
        answer = owner.get(address)
        page = explanation_page(owner, f"/oauth/explain/{answer.headers['x-request-id']}")
        found = row(page, label)
        assert found[0] == sent
        assert found[1].startswith(registered)
        assert page.count("<mark>") == (found[0] + found[1]).count("<mark>"), "nothing else is marked"


def test_scopes_of_another_server_are_not_marked(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, olga) as owner:
        asked = {"scope": "openid mcp:tools", "resource": "https://mcp.example/mcp"}
        answer = owner.get(client.address(response_type="token", **asked))
        page = explanation_page(owner, f"/oauth/explain/{answer.headers['x-request-id']}")
        assert row(page, "scope")[0] == "openid mcp:tools"


def test_differences_at_the_token_endpoint_are_marked(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    confidential, public = create_app(hub, olga, refresh_tokens=True), create_app(hub, olga, confidential=False)
    token = f"{hub.url}/oauth/token"
    grant = {"grant_type": "authorization_code", "code": "x", "redirect_uri": REDIRECT}
    with browser_of(hub, olga) as owner:

        def page_of(answer: httpx.Response) -> str:
            return explanation_page(owner, path_of(hub, answer.json()["error_uri"]))

        alone = page_of(lean_http.post(token, data={**grant, "client_id": confidential.id}))
        assert row(alone, "client") == ("<mark>client ID alone</mark>", "an app with a secret")
        wrong = page_of(lean_http.post(token, data=grant, auth=(confidential.id, "wrong")))
        assert row(wrong, "client") == ("<mark>client ID and secret, with HTTP Basic</mark>", "another secret")
        needless = page_of(lean_http.post(token, json={**grant, "client_id": public.id, "client_secret": "mine"}))
        assert row(needless, "client") == ("<mark>client ID and secret, in the body</mark>", "an app without a secret")
        kind = page_of(lean_http.post(token, data={"grant_type": "password"}, auth=confidential.basic))
        assert row(kind, "grant_type")[0] == "<mark>password</mark>"
        twice = page_of(lean_http.post(token, data={**grant, "client_secret": "x"}, auth=confidential.basic))
        assert row(twice, "client")[0] == "<mark>client ID and secret, with HTTP Basic and in the body</mark>"
        bearer = {"authorization": "Bearer x"}
        other = page_of(lean_http.post(token, data={**grant, "client_id": confidential.id}, headers=bearer))
        assert row(other, "client")[0] == "<mark>an Authorization header other than Basic</mark>"
        without = page_of(lean_http.post(token, data={"grant_type": "refresh_token"}, auth=confidential.basic))
        assert row(without, "refresh_token")[0] == "<mark>not sent</mark>"
        code = page_of(lean_http.post(token, data=grant, auth=confidential.basic))
        assert "<mark>" not in code
        assert NO_DIFFERENCE in code
        assert "Also sent: <code>code</code>. Their values are not stored." in code
        about_tokens = lean_http.post(f"{hub.url}/oauth/introspect", data={"token": "x", "client_id": public.id})
        asking = page_of(about_tokens)
        assert row(asking, "client") == (
            "<mark>client ID alone</mark>",
            "an app without a secret, which may not introspect tokens",
        )
        for page in (alone, wrong, kind, twice, other, without, asking):
            assert NO_DIFFERENCE not in page
            assert page.count("<mark>") == 1


def test_refused_exchange_names_its_cause_and_not_the_secret(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    acme = create_organization(hub, "acme", olga)
    asks = create_app(hub, None, acme, refresh_tokens=True)
    may = create_exchange_app(hub, acme)
    with browser_of(hub, olga) as owner:

        def page_of(client: Client, **more: str) -> str:
            refused = send_exchange(client, "olga@example.org", **more)
            assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client"), refused.text
            return explanation_page(owner, path_of(hub, refused.json()["error_uri"]))

        page = page_of(asks)
        assert "This app does not have the token exchange privilege." in page
        assert row(page, "client") == ("client ID and secret, with HTTP Basic", "an app with a secret")
        sent, registered = row(page, "grant_type")
        assert (sent, registered.split()) == (f"<mark>{GRANT}</mark>", [name for name in GRANTS if name != GRANT])
        hub.call(lambda opened: settings.set_plan(opened.accounts, acme, "free", SYSTEM))
        page = page_of(may)
        assert "Token exchange needs the Enterprise plan." in page
        assert GRANT in row(page, "grant_type")[1], "this app has it; the plan is what is missing"
        body = {"client_id": may.id, "client_secret": may.secret or ""}
        refused = lean_http.post(f"{hub.url}/oauth/token", data={"grant_type": GRANT, **body})
        page = explanation_page(owner, path_of(hub, refused.json()["error_uri"]))
        assert row(page, "client") == ("<mark>client ID and secret, in the body</mark>", "an app with a secret")


def test_missing_parts_of_a_redemption_are_named(hub: RunningHub) -> None:
    """Not visible in the registration: the code was requested with a challenge, or with another redirect URI."""
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, redirect_uris=(REDIRECT, "http://localhost/cb"), refresh_tokens=True)
    verifier, challenge = pkce_pair()
    proven = {"code_challenge": challenge, "code_challenge_method": "S256"}
    grant = {"grant_type": "authorization_code", "code": code_for(client, ada, **proven), "redirect_uri": REDIRECT}
    with browser_of(hub, olga) as owner:

        def page_of(**form: str) -> str:
            refused = client.post("/oauth/token", form)
            assert refused.status_code == 400, refused.text
            page = explanation_page(owner, path_of(hub, refused.json()["error_uri"]))
            assert page.count("<mark>") == 1
            assert NO_DIFFERENCE not in page
            return page

        assert row(page_of(**grant), "PKCE")[0] == "<mark>no code_verifier</mark>"
        assert row(page_of(**grant, code_verifier="a" * 43), "PKCE")[0] == "<mark>code_verifier</mark>"
        elsewhere = page_of(**{**grant, "redirect_uri": "http://localhost/cb"}, code_verifier=verifier)
        assert row(elsewhere, "redirect_uri") == (
            "<mark>http://localhost/cb</mark>",
            "the one in the authorization request",
        )
        del grant["redirect_uri"]
        assert row(page_of(**grant, code_verifier=verifier), "redirect_uri")[0] == "<mark>not sent</mark>"
        token = tokens_for(client, ada, scope="openid profile")["refresh_token"]
        wider = page_of(grant_type="refresh_token", refresh_token=token, scope="email")
        assert row(wider, "scope")[0] == "<mark>email</mark>"


def test_reason_why_a_code_is_invalid_is_named(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga)
    used, late = code_for(client, ada), code_for(client, ada)
    assert client.redeem(used).status_code == 200
    reasons = {
        "x": "Unknown code, or it expired more than ten minutes ago.",
        used: "This code was already redeemed, so its tokens were revoked. "
        "Redeem a code once, then redirect away from the callback.",
        late: "This code expired after one minute. Send the user to sign in again and redeem the code at once.",
    }
    hub.clock.advance(seconds=61)
    with browser_of(hub, olga) as owner:
        for code, reason in reasons.items():
            refused = client.redeem(code).json()
            assert (refused["error"], refused["error_description"]) == ("invalid_grant", reason)
            page = explanation_page(owner, path_of(hub, refused["error_uri"]))
            assert f'<p class="measure">{reason}</p>' in page
            assert NO_DIFFERENCE in page


def test_page_compares_with_the_current_registration(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga)
    with browser_of(hub, olga) as owner:
        answer = owner.get(client.address(redirect_uri="https://app.example/new"))
        path = f"/oauth/explain/{answer.headers['x-request-id']}"
        assert "<mark>" in explanation_page(owner, path)

        async def add(opened: Hub) -> None:
            sql = "UPDATE apps SET redirect_uris = :uris"
            await opened.db.write(lambda tx: tx.exec(sql, {"uris": '["https://app.example/new"]'}))

        hub.call(add)
        assert "<mark>" not in owner.get(path).text
