"""App owners ask the operator for token exchange or a scope; the operator approves or rejects."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import Client, create_app, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.organizations import entries_of
from tests.bed.people import (
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    fill_form,
    link_in,
    mails_to,
    post,
    submit,
)
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.resources import Hub
from hubgate.server.scopes import Risk, Scope

pytestmark = pytest.mark.one_engine

REQUESTS = "/operator/requests"
METRICS = Scope("read-metrics", Risk.CHANGES, "See how the hub is used")


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """With one scope defined by the operator."""
    settings = replace(settings_for(engine.fresh_url(), tmp_path), extra_scopes=(METRICS,))
    with run_hub(settings) as hub:
        yield hub


def people(hub: RunningHub) -> tuple[User, User, Organization, Client]:
    """The operator, an admin, the organization and its app."""
    boss, ada = create_user(hub, "boss", operator=True), create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada, plan="enterprise")
    return boss, ada, acme, create_app(hub, organization=acme, name="Bridge")


def at(client: Client) -> str:
    return f"/organizations/acme/settings/applications/{client.id}"


def decide(browser: httpx.Client, verb: str) -> httpx.Response:
    """Decides the only waiting request."""
    page = browser.get(REQUESTS).text
    start = page.index(f'action="{REQUESTS}/') + len('action="')
    address = page[start : page.index('"', start)].rpartition("/")[0]
    return submit(browser, REQUESTS, f"{address}/{verb}")


def waiting_in_navigation(browser: httpx.Client) -> str:
    """The number beside Requests, on another page of the operator; empty if there is none."""
    found = re.search(r'<span class="count">(\d+)', browser.get("/operator/users").text)
    return found[1] if found else ""


def test_grant_on_an_unsuitable_plan_is_not_called_usable(hub: RunningHub) -> None:
    boss, ada = create_user(hub, "boss", operator=True), create_user(hub, "ada")
    create_organization(hub, "umbrella", ada)
    client = create_app(hub, organization=create_organization(hub, "acme", ada), name="Bridge")
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        assert "No request from an app owner waits." in operator.get("/operator").text
        assert waiting_in_navigation(operator) == ""
        submit(owner, f"{at(client)}/ask/token-exchange", reason="Our portal.")
        assert 'aria-label="Waiting requests"' in operator.get("/operator").text
        assert waiting_in_navigation(operator) == "1"
        page = operator.get(REQUESTS).text
        assert "(free plan)" in page
        assert "Has no effect until the organization has the Enterprise plan." in page
        (link,) = re.findall(r'<a href="([^"]+)">Change the plan</a>', page)
        organizations = operator.get(link).text
        assert "acme" in organizations
        assert "umbrella" not in organizations
        decide(operator, "grant")
        (mail,) = mails_to(hub, "ada@example.org")
        assert mail["Subject"] == "Granted: token exchange for Bridge"
        assert "It works once the organization has the Enterprise plan" in mail.get_content()
        assert "You can use it now" not in mail.get_content()


def test_token_exchange_is_requested_and_granted(hub: RunningHub) -> None:
    boss, ada, acme, client = people(hub)
    create_user(hub, "second", operator=True)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        asked = submit(owner, f"{at(client)}/ask/token-exchange", reason="Our portal\nsigns members in.")
        assert (asked.status_code, asked.headers["location"]) == (303, at(client))
        assert "Waiting" in owner.get(at(client)).text
        for address in ("boss@example.org", "second@example.org"):
            (mail,) = mails_to(hub, address)
            assert mail["Subject"] == "Request: token exchange for Bridge"
            assert "ada requested it." in mail.get_content()
            assert link_in(mail) == REQUESTS
        page = operator.get(REQUESTS).text
        for text in ("Bridge", client.id, "Token exchange", "Our portal\nsigns members in.", ">acme<", ">ada<"):
            assert text in page
        done = decide(operator, "grant")
        assert (done.status_code, done.headers["location"]) == (303, REQUESTS)
        page = operator.get(REQUESTS).text
        assert "Granted: token exchange for Bridge." in page
        assert "Requests from app owners for" in page
        assert "✓</span> Granted" in page
        assert "Granted by the operator" in owner.get(f"{at(client)}/exchange").text
    (mail,) = mails_to(hub, ada.email)
    assert mail["Subject"] == "Granted: token exchange for Bridge"
    assert link_in(mail) == at(client)
    with api(hub, create_token(hub, ada)) as program:
        assert program.get(f"/api{at(client)}").json()["tokenExchange"] is True
    assert {(entry["type"], entry["author_name"]) for entry in entries_of(hub, acme)} == {
        ("org.create", "system"),
        ("oauth.create_app", "system"),
        ("oauth.grant_token_exchange", "boss"),
    }


def test_rejection_changes_nothing(hub: RunningHub) -> None:
    boss, ada, acme, client = people(hub)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        ask = f"{at(client)}/ask/token-exchange"
        submit(owner, ask, reason="please")
        assert decide(operator, "refuse").status_code == 303
        assert "✕</span> Refused" in owner.get(at(client)).text
        (mail,) = mails_to(hub, ada.email)
        assert mail["Subject"] == "Refused: token exchange for Bridge"
        assert submit(owner, ask, reason="again").status_code == 303, "it may be asked again"
    assert sorted(entry["type"] for entry in entries_of(hub, acme)) == ["oauth.create_app", "org.create"]


@pytest.mark.parametrize("of", ["user", "organization"])
def test_scope_is_requested_granted_used_and_revoked(hub: RunningHub, of: str) -> None:
    boss, ada, _, client = people(hub)
    address = at(client)
    if of == "user":
        client = create_app(hub, ada, name="Bridge")
        address = f"/settings/applications/{client.id}"
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        assert "See how the hub is used" in owner.get(f"{address}/ask/scope").text
        assert 'value="read-metrics"' not in owner.get(address).text
        assert submit(owner, f"{address}/ask/scope", wanted="read-metrics", reason="charts").status_code == 303
        decide(operator, "grant")
        shown = owner.get(address).text
        assert 'name="scopes" value="read-metrics"' in shown, "the owner may add it to the app"
        assert "This app has <code>read-metrics</code>" in shown
    bob = create_user(hub, "bob")
    tokens = tokens_for(client, bob, scope="openid read-metrics")
    assert tokens["scope"].split() == ["openid", "read-metrics"]

    async def revoke(opened: Hub) -> None:
        await privileges.revoke_scope(opened.oauth, client.id, "read-metrics", SYSTEM)

    hub.call(revoke)
    answer = client.post("/oauth/introspect", {"token": tokens["access_token"]}).json()
    assert (answer["active"], answer["scope"]) == (True, "openid"), "live tokens lose it at once"
    with browser_of(hub, bob) as browser:
        assert "invalid_scope" in browser.get(client.address(scope="openid read-metrics")).headers["location"]


def test_undefined_scope_cannot_be_granted(hub: RunningHub) -> None:
    boss, ada, _, client = people(hub)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        submit(owner, f"{at(client)}/ask/scope", wanted="fly-high", reason="to fly")
        refused = decide(operator, "grant")
        assert refused.status_code == 422
        assert "This hub has no scope fly-high. Add it as [[extra_scopes]] to hubgate.toml first." in refused.text
        assert "Grant<" in operator.get(REQUESTS).text, "it still waits"


@pytest.mark.parametrize(
    ("wanted", "reason", "says"),
    [
        ("read-repos", "x", "Every app may request read-repos."),
        ("", "x", "Name a scope"),
        ("Fly High", "x", "Name a scope"),
        ("fly-high", " ", "Describe the purpose"),
        ("fly-high", "x" * 1001, "Describe the purpose"),
        ("token-exchange", "x", "Only an organization"),
    ],
)
def test_incomplete_requests_are_rejected(hub: RunningHub, wanted: str, reason: str, says: str) -> None:
    boss, ada, _, _ = people(hub)
    client = create_app(hub, ada)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        refused = submit(owner, f"/settings/applications/{client.id}/ask/scope", wanted=wanted, reason=reason)
        assert refused.status_code == 422
        assert says in refused.text
        assert "Requests from app owners for" in operator.get(REQUESTS).text


def test_same_request_is_stored_once(hub: RunningHub) -> None:
    _, ada, _, client = people(hub)
    ask = f"{at(client)}/ask/token-exchange"
    with browser_of(hub, ada) as owner:
        answers = run_concurrently([fill_form(owner, ask, reason=f"reason {number}") for number in range(8)])
        assert sorted(answer.status_code for answer in answers) == [303, *[422] * 7]
        assert "You have already requested token exchange." in submit(owner, ask, reason="x").text
    assert len(mails_to(hub, "boss@example.org")) == 1


def test_requests_per_user_are_limited(hub: RunningHub) -> None:
    _, ada, _, client = people(hub)
    with browser_of(hub, ada) as owner:
        statuses = [
            submit(owner, f"{at(client)}/ask/scope", wanted=f"scope-{number}", reason="x").status_code
            for number in range(12)
        ]
    assert statuses == [*[303] * 10, 429, 429]


def test_operator_gets_at_most_five_mails_an_hour(hub: RunningHub) -> None:
    """Requests without a mail are still on the list."""
    boss, *_ = people(hub)
    askers = [create_user(hub, f"asker-{number}") for number in range(4)]
    own = [f"/settings/applications/{create_app(hub, asker).id}/ask/scope" for asker in askers]
    with ExitStack() as stack:
        browsers = [stack.enter_context(browser_of(hub, asker)) for asker in askers]
        ready = [
            fill_form(browser, ask, wanted=f"scope-{number}", reason="x")
            for browser, ask in zip(browsers, own, strict=True)
            for number in range(2)
        ]
        assert {answer.status_code for answer in run_concurrently(ready)} == {303}
        assert len(mails_to(hub, boss.email, 5)) == 5
        create_user(hub, "second", operator=True)
        submit(browsers[0], own[0], wanted="one-more", reason="x")
        assert len(mails_to(hub, boss.email, 5)) == 5
        assert len(mails_to(hub, "second@example.org")) == 1, "each has their own five"
        with browser_of(hub, boss) as operator:
            assert operator.get(REQUESTS).text.count("/grant") == 9
        hub.clock.advance(seconds=3600)
        submit(browsers[0], own[0], wanted="another", reason="x")
    assert len(mails_to(hub, boss.email, 6)) == 6


def test_concurrent_decisions_have_one_outcome(hub: RunningHub) -> None:
    boss, ada, _, client = people(hub)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        submit(owner, f"{at(client)}/ask/token-exchange", reason="x")
        page = operator.get(REQUESTS).text
        start = page.index(f'action="{REQUESTS}/') + len('action="')
        address = page[start : page.index('"', start)].rpartition("/")[0]
        verbs = ("grant", "refuse") * 3
        answers = run_concurrently([fill_form(operator, REQUESTS, f"{address}/{verb}") for verb in verbs])
        won = [answer for answer in answers if answer.status_code == 303]
        assert len(won) == 1
        assert {answer.status_code for answer in answers} == {303, 409}
        said = operator.get(REQUESTS).text
        granted = "✓</span> Granted" in said
        assert granted is not ("✕</span> Refused" in said)
        assert ("Granted by the operator" in owner.get(f"{at(client)}/exchange").text) is granted
    assert len(mails_to(hub, ada.email)) == 1


def test_only_operators_decide(hub: RunningHub) -> None:
    boss, ada, _, client = people(hub)
    with browser_of(hub, ada) as owner, browser_of(hub) as nobody, browser_of(hub, boss) as operator:
        submit(owner, f"{at(client)}/ask/token-exchange", reason="x")
        assert owner.get(REQUESTS).status_code == 403
        assert nobody.get(REQUESTS).status_code == 303
        for verb in ("grant", "refuse"):
            address = f"{REQUESTS}/{'0' * 24}/{verb}"
            assert post(owner, address).status_code == 403
            assert post(operator, address).status_code == 404
            assert operator.post(address, data={"x": "y"}).status_code == 403, "without the CSRF field"


def test_requests_are_deleted_with_their_app(hub: RunningHub) -> None:
    boss, ada, _, client = people(hub)
    with browser_of(hub, ada) as owner, browser_of(hub, boss) as operator:
        submit(owner, f"{at(client)}/ask/token-exchange", reason="x")
        submit(owner, f"{at(client)}/delete", name="Bridge")
        assert "Requests from app owners for" in operator.get(REQUESTS).text
