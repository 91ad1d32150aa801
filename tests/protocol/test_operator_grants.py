"""Operators grant privileges to apps and revoke them, and invite people to the hub."""

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import create_app
from tests.bed.engines import Engine, settings_for
from tests.bed.organizations import entries_of
from tests.bed.people import browser_of, create_organization, create_user, link_in, mails_to, post, submit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.scopes import Risk, Scope

pytestmark = pytest.mark.one_engine

PRIVILEGES, REVOKE = "/operator/privileges", "/operator/privileges/revoke"
USERS, INVITATIONS = "/operator/users", "/operator/invitations"
METRICS = Scope("read-metrics", Risk.CHANGES, "See how the hub is used")
DOCUMENT = "https://app.example/.well-known/oauth-cimd"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """With one scope defined by the operator."""
    settings = replace(settings_for(engine.fresh_url(), tmp_path), extra_scopes=(METRICS,))
    with run_hub(settings) as hub:
        yield hub


@pytest.fixture
def operator(hub: RunningHub) -> Iterator[httpx.Client]:
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        yield client


def grant(operator: httpx.Client, client_id: str, privilege: str) -> httpx.Response:
    return submit(operator, PRIVILEGES, PRIVILEGES, client_id=client_id, privilege=privilege)


def revoke(operator: httpx.Client, client_id: str, privilege: str) -> httpx.Response:
    address = str(httpx.URL(REVOKE, params={"client_id": client_id, "privilege": privilege}))
    return submit(operator, address, REVOKE)


def rows(operator: httpx.Client) -> list[str]:
    table = operator.get(PRIVILEGES).text.partition("<tbody>")[2].partition("</tbody>")[0]
    return [
        " ".join(unescape(re.sub(r"<[^>]+>", " ", row)).split())
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    ]


def test_privileges_are_granted_and_revoked(hub: RunningHub, operator: httpx.Client) -> None:
    acme = create_organization(hub, "acme", create_user(hub, "ada"))
    app = create_app(hub, organization=acme, name="Bridge")
    assert rows(operator) == []
    for privilege, text in (("token-exchange", "token exchange"), ("read-metrics", "the scope read-metrics")):
        assert grant(operator, app.id, privilege).status_code == 303
        assert f"Granted {text} to Bridge." in operator.get(PRIVILEGES).text
    assert [row.partition(" Revoke…")[0] for row in rows(operator)] == [
        f"Bridge of acme , {app.id} Token exchange",
        f"Bridge of acme , {app.id} read-metrics",
    ]
    assert (
        "has no live tokens from it"
        in operator.get(REVOKE, params={"client_id": app.id, "privilege": "token-exchange"}).text
    )
    for privilege in ("token-exchange", "read-metrics"):
        assert revoke(operator, app.id, privilege).status_code == 303
    assert rows(operator) == []
    recorded = [entry["type"] for entry in entries_of(hub, acme)]
    for kind in ("grant_token_exchange", "grant_scope", "revoke_token_exchange", "revoke_scope"):
        assert recorded.count(f"oauth.{kind}") == 1


def test_app_with_a_metadata_document_gets_a_scope(operator: httpx.Client) -> None:
    assert grant(operator, DOCUMENT, "read-metrics").status_code == 303
    (row,) = rows(operator)
    assert row.startswith("https:// app.example/ .well-known/ oauth-cimd read-metrics")
    assert revoke(operator, DOCUMENT, "read-metrics").status_code == 303
    assert rows(operator) == []


def test_grant_that_is_not_possible_names_the_reason(hub: RunningHub, operator: httpx.Client) -> None:
    own = create_app(hub, owner=create_user(hub, "bob"), name="Personal")
    for client_id, privilege, status, message in (
        ("no-such-app", "token-exchange", 404, "App no-such-app not found."),
        (own.id, "token-exchange", 409, "Only an organization&#39;s app may exchange tokens."),
        (own.id, "read-secrets", 422, "This hub has no scope read-secrets."),
        (DOCUMENT, "token-exchange", 409, "cannot exchange tokens."),
    ):
        refused = grant(operator, client_id, privilege)
        assert refused.status_code == status
        assert message in refused.text
        assert f'value="{client_id}"' in refused.text
    assert rows(operator) == []


def test_privilege_that_an_app_does_not_have_cannot_be_revoked(hub: RunningHub, operator: httpx.Client) -> None:
    app = create_app(hub, owner=create_user(hub, "bob"), name="Personal")
    assert operator.get(REVOKE, params={"client_id": app.id, "privilege": "read-metrics"}).status_code == 404
    assert post(operator, REVOKE, client_id=app.id, privilege="read-metrics").status_code == 404


def test_operator_invites_somebody(hub: RunningHub, operator: httpx.Client) -> None:
    assert submit(operator, USERS, INVITATIONS, email="new@example.org").status_code == 303
    page = operator.get(USERS).text
    assert "Invited new@example.org." in page
    link = link_in(mails_to(hub, "new@example.org")[0])
    assert link.startswith("/invitations/")
    assert link not in page
    with hub.client() as visitor:
        assert visitor.get(link).status_code == 200


def test_invitation_that_is_not_possible_keeps_the_address(hub: RunningHub, operator: httpx.Client) -> None:
    create_user(hub, "bob")
    for email, status, message in (
        ("bob@example.org", 409, "already has an account."),
        ("nobody", 422, "nobody"),
    ):
        refused = submit(operator, USERS, INVITATIONS, email=email)
        assert refused.status_code == status
        assert message in refused.text
        assert f'value="{email}"' in refused.text
        assert "Fix these to continue:" in refused.text


def test_only_operators_grant_and_invite(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert client.get(PRIVILEGES).status_code == 403
        for address in (PRIVILEGES, REVOKE, INVITATIONS):
            assert (
                post(client, address, email="x@example.org", client_id="x", privilege="token-exchange").status_code
                == 403
            )
