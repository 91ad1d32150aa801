"""Token exchange on pages: an organization's app for its admins, and a member's issued tokens for the member."""

import re
from html import unescape

import httpx
import pytest
from tests.bed.apps import Client
from tests.bed.exchange import create_exchange_app, exchange_token, send_exchange
from tests.bed.organizations import entries_of
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user, post, submit
from tests.bed.running_hub import RunningHub
from tests.protocol.test_phone_columns import columns

from hubgate.server.accounts.model import Organization, User
from hubgate.server.web.pages.listing import ROWS

pytestmark = pytest.mark.one_engine

ACME = "/organizations/acme/settings/applications"
LOG = "/organizations/acme/settings/audit-log"
TOKENS = "/settings/tokens"
KEEP_IT = "Anyone with this secret can get tokens for any member of acme. Keep it on a server."


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def bob(hub: RunningHub) -> User:
    return create_user(hub, "bob")


@pytest.fixture
def acme(hub: RunningHub, ada: User, bob: User) -> Organization:
    return create_organization(hub, "acme", ada, bob="write")


@pytest.fixture
def client(hub: RunningHub, acme: Organization) -> Client:
    made = create_exchange_app(hub, acme, name="Atlas Notebook")
    hub.clock.advance(1)
    return made


def at(client: Client) -> str:
    return f"{ACME}/{client.id}/exchange"


def text_of(response: httpx.Response) -> str:
    """The text of <main>, with single spaces."""
    main = response.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", main)).split())


def works(hub: RunningHub, token: str) -> bool:
    with api(hub, token) as program:
        return program.get("/api/whoami-v2").status_code == 200


def test_page_shows_the_state_of_token_exchange(hub: RunningHub, ada: User, client: Client) -> None:
    with browser_of(hub, ada) as browser:
        page = text_of(browser.get(f"{ACME}/{client.id}"))
        assert "● Active" in page
        assert KEEP_IT in page
        shown = browser.get(at(client))
        assert KEEP_IT in text_of(shown)
        for strip in ("✓ Plan", "✓ Privilege", "✓ Secret", "● Not paused"):
            assert strip in text_of(shown)
        assert f"{hub.url}/oauth/token" in shown.text
        assert f"{client.id}:$CLIENT_SECRET" in shown.text
        assert "Tokens that the app obtains appear here by member" in text_of(shown)
        submit(browser, at(client), at(client), tokenDuration="28800", paused="on")
        submit(browser, f"{ACME}/{client.id}/secret/delete")
        shown = browser.get(at(client))
        assert ("✕ Secret" in text_of(shown), "‖ Paused" in text_of(shown)) == (True, True)
        assert f'href="{ACME}/{client.id}/secret">Create one' in shown.text
        assert "Paused" in text_of(browser.get(f"{ACME}/{client.id}"))


def test_saving_limits_does_not_widen_them(hub: RunningHub, ada: User, acme: Organization) -> None:
    """A scope is allowed that the app no longer has: without it the list would be empty, which means no limit."""
    client = create_exchange_app(hub, acme, scopes=("openid", "read-repos"))
    address = f"/api{ACME}/{client.id}"
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        assert script.patch(address, json={"allowedScopes": ["jobs"]}).is_success
        shown = Page(browser.get(at(client)))
        assert "jobs: not a scope of the app" in text_of(shown.response)
        ticked = re.findall(r'name="allowedScopes" value="([^"]+)"[^>]* checked', shown.response.text)
        assert ticked == ["jobs"]
        submit(browser, at(client), at(client), tokenDuration="3600", allowedScopes=ticked)
        assert script.get(address).json()["allowedScopes"] == ["jobs"]
        assert exchange_token(client, "bob@example.org")["scope"] == ""


def test_stale_form_does_not_change_the_pause(hub: RunningHub, ada: User, client: Client) -> None:
    """Only fields that were changed on the form are saved."""
    address = f"/api{ACME}/{client.id}"
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        for paused in (True, False):
            hidden = Page(browser.get(at(client))).hidden()
            ticked = {} if paused else {"paused": "on"}
            assert script.patch(address, json={"paused": paused}).is_success
            form = {**hidden, **ticked, "tokenDuration": "3600"}
            assert browser.post(at(client), data=form).status_code == 303
            assert script.get(address).json()["paused"] is paused


def test_dry_run_on_the_page(hub: RunningHub, ada: User, acme: Organization, client: Client) -> None:
    def tried(email: str, **more: str) -> httpx.Response:
        return submit(browser, at(client), f"{at(client)}/dry-run", subjectToken=email, **more)

    before = len(entries_of(hub, acme))
    with browser_of(hub, ada) as browser:
        given = text_of(tried("bob@example.org"))
        assert "Would give bob (write) a token for 8 hours, with read-repos email profile openid." in given
        assert "with read-repos." in text_of(tried("bob@example.org", scope=" read-repos "))
        refused = tried("<eve@example.org>")
        assert "Would refuse: nobody in the organization has this address" in text_of(refused)
        assert "The app receives invalid_grant." in text_of(refused)
        assert 'value="&lt;eve@example.org&gt;"' in refused.text
        assert "Would refuse" in text_of(tried("bob@example.org", scope="fly"))
        rejected = tried("", ip="home")
        assert rejected.status_code == 422
        assert ('href="#subjectToken"' in rejected.text, 'href="#ip"' in rejected.text) == (True, True)
        assert "Would" not in text_of(rejected)
    assert len(entries_of(hub, acme)) == before


def test_live_tokens_are_listed_by_member(hub: RunningHub, ada: User, client: Client) -> None:
    tokens = [exchange_token(client, f"{name}@example.org")["access_token"] for name in ("bob", "bob", "ada")]
    with browser_of(hub, ada) as browser:
        heads, one, two = columns(browser.get(at(client)).text, "Members with live tokens")
        assert heads == ["Member", "Tokens", '<span class="unseen">Revoke</span>']
        assert [">ada<" in one[0], one[1], ">bob<" in two[0], two[1]] == [True, "1", True, "2"]
        assert "3 in all." in text_of(browser.get(at(client)))
        mine = f"{at(client)}/members/bob"
        assert f'href="{mine}"' in two[0]
        shown = browser.get(mine)
        actions = re.findall(r'action="([^"]+/revoke)"', shown.text)
        assert len(actions) == 2
        done = submit(browser, mine, actions[0])
        assert (done.status_code, done.headers["location"]) == (303, at(client)), "the first page has no query"
        assert sorted(works(hub, token) for token in tokens) == [False, True, True]
        assert len(re.findall(r'action="([^"]+/revoke)"', browser.get(mine).text)) == 1
        assert post(browser, actions[0]).status_code == 404
        assert browser.get(f"{at(client)}/members/ghost").status_code == 404


def test_revoking_all_tokens_of_a_member_says_how_many_first(
    hub: RunningHub, ada: User, acme: Organization, client: Client
) -> None:
    tokens = [exchange_token(client, f"{name}@example.org")["access_token"] for name in ("bob", "bob", "ada")]
    address = f"{at(client)}/revoke"
    with browser_of(hub, ada) as browser:
        asked = browser.get(f"{address}?user=Bob")
        assert "This permanently revokes 2 live tokens that Atlas Notebook obtained for bob." in text_of(asked)
        assert "Revoke 2 tokens of bob" in text_of(asked)
        assert all(works(hub, token) for token in tokens), "looking changes nothing"
        done = browser.post(address, data=Page(asked).hidden(address))
        assert (done.status_code, done.headers["location"]) == (303, at(client))
        assert "Revoked 2 tokens." in browser.get(at(client)).text
        assert [works(hub, token) for token in tokens] == [False, False, True]
        assert "There are no live tokens for bob." in text_of(browser.get(f"{address}?user=bob"))
        assert browser.get(f"{address}?user=ghost").status_code == 404
    assert [entry["message"] for entry in entries_of(hub, acme) if entry["type"] == "oauth.revoke_tokens"] == [
        "revoked 2 exchanged tokens of the app Atlas Notebook"
    ]


def test_tokens_issued_in_a_period_can_be_revoked(hub: RunningHub, ada: User, client: Client) -> None:
    """Times are those of the page, to the minute; the last minute is included."""
    hub.clock.advance(3600 - hub.clock() // 1_000_000 % 3600)
    tokens = []
    for _ in range(4):
        hub.clock.advance(30)
        tokens.append(exchange_token(client, "bob@example.org")["access_token"])
        hub.clock.advance(30)
    address = f"{at(client)}/revoke"
    with browser_of(hub, ada) as browser:
        asked = browser.get(f"{address}?since=2026-09-21T15:01&until=2026-09-21T15:02")
        said = text_of(asked)
        assert "This permanently revokes 2 live tokens" in said
        assert ", from 2026-09-21 15:01 UTC until 2026-09-21 15:02 UTC." in said
        assert browser.post(address, data=Page(asked).hidden(address)).status_code == 303
        assert [works(hub, token) for token in tokens] == [True, False, False, True]
        for query, field in (("since=x", "since"), ("since=2026-09-22&until=2026-09-21", "until")):
            rejected = browser.get(f"{address}?{query}")
            assert rejected.status_code == 422
            assert f'href="#{field}"' in rejected.text
            assert "button-danger" not in rejected.text
        rest = browser.get(f"{address}?since=&until=")
        assert "This permanently revokes 2 live tokens that Atlas Notebook obtained." in text_of(rest)
        assert browser.post(address, data=Page(rest).hidden(address)).status_code == 303
        assert not any(works(hub, token) for token in tokens)


def test_long_lists_have_pages(hub: RunningHub, ada: User, bob: User, client: Client) -> None:
    for _ in range(ROWS + 1):
        exchange_token(client, "bob@example.org")
        hub.clock.advance(1)
    for name, who, first in (
        (f"{at(client)}/members/bob", ada, r"Revoke<span"),
        (TOKENS, bob, r"<bdi>Atlas Notebook</bdi>"),
    ):
        with browser_of(hub, who) as browser:
            shown = browser.get(name).text
            assert len(re.findall(first, shown)) == ROWS
            (on,) = re.findall(r'href="([^"]+)">(?:Next|Older)</a>', shown)
            assert len(re.findall(first, browser.get(unescape(on)).text)) == 1
            assert browser.get(f"{name}?cursor=x&issued=x").status_code == 400


def test_member_sees_tokens_issued_to_organizations(hub: RunningHub, bob: User, client: Client) -> None:
    with browser_of(hub, bob) as browser:
        empty = text_of(browser.get(TOKENS))
        assert "Issued for you by organizations" in empty
        assert "Tokens that an app of your organization obtains to act on your behalf appear here" in empty
        exchange_token(client, "bob@example.org", scope="read-repos")
        exchange_token(client, "ada@example.org")
        shown = browser.get(TOKENS).text
        heads, row = columns(shown, "Issued for you by organizations")
        assert heads == ["App", "Expires"]
        assert "Atlas Notebook" in row[0]
        assert "read-repos" in shown
        assert "They are revoked when you leave the organization." in text_of(browser.get(TOKENS))
        assert submit(browser, TOKENS, TOKENS, name="laptop", role="read").status_code == 200


def test_audit_log_describes_exchanges(hub: RunningHub, ada: User, acme: Organization, client: Client) -> None:
    other = create_exchange_app(hub, acme, name="Other")
    exchange_token(client, "bob@example.org")
    hub.clock.advance(1)
    send_exchange(client, "eve@example.org")
    hub.clock.advance(1)
    send_exchange(other, "ada@example.org", scope="fly")
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as script:
        shown = browser.get(LOG, params={"q": "type:oauth.token"})
        assert "3 entries" in text_of(shown)
        page = re.sub('<span class="caption block phone">.*?</span>', "", shown.text)
        page = page.replace("<wbr>", "")
        rows = [" ".join(unescape(re.sub("<[^>]+>", " ", row)).split()) for row in page.split("<tr>")[2:5]]
        refused = "was refused a token for eve@example.org: nobody in the organization has this address"
        assert f"Atlas Notebook App {refused} oauth.token ✕ Refused Atlas Notebook 127.0.0.1" in rows[1]
        assert "Atlas Notebook App got a token for bob oauth.token Atlas Notebook 127.0.0.1" in rows[2]
        (by_app, *_) = re.findall(rf'href="({LOG}\?q=app%3A[^"]+)"', shown.text)
        assert f"app%3A{other.id}" in by_app
        assert text_of(browser.get(by_app)).count("oauth.token") == 1
        assert "Refused" not in text_of(browser.get(LOG, params={"q": f"app:{client.id} bob"}))
        found = script.get("/api/organizations/acme/audit-log/export", params={"q": f"app:{client.id.upper()}"}).json()
        assert [entry["data"]["result"] for entry in found] == ["refused", "granted"]
        for nothing in (client.id[:-1], client.id.replace("-", "_"), "%", '"'):
            query = {"q": f"app:{nothing}"}
            assert script.get("/api/organizations/acme/audit-log/export", params=query).json() == []
