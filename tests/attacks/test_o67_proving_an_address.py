"""O67: an account created with somebody else's address belongs to its creator only until the owner proves the
address.
"""

from contextlib import ExitStack

import httpx
import pytest
from tests.bed.account_assets import EVERYTHING, create_account_assets
from tests.bed.apps import create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.exchange import create_exchange_app, send_exchange
from tests.bed.organizations import entries_of
from tests.bed.people import (
    PASSWORD,
    VISITOR,
    Page,
    browser_of,
    create_organization,
    create_user,
    fill_form,
    link_in,
    mails_to,
    submit,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Owner, Person, User
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.tokens import personal
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Unauthorized
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent.approval import Selection, store_approval
from hubgate.server.oauth.consent.model import AccessRequest
from hubgate.server.resources import Hub
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

NEW = "another horse battery"
NO_PASSWORD = "Type the password of eve."


def stored(hub: RunningHub, user: User) -> User:
    found = hub.call(lambda opened: store.user(opened.db, user.id))
    assert found is not None
    return found


def is_verified(hub: RunningHub, user: User) -> bool:
    return stored(hub, user).email_verified_at is not None


def confirmation_of(hub: RunningHub, user: User) -> str:
    return link_in(mails_to(hub, user.email)[0])


def reset_by_mail(hub: RunningHub, user: User) -> str:
    with hub.client() as client:
        assert submit(client, "/reset", email=user.email).status_code == 200
    (link,) = [link_in(mail) for mail in mails_to(hub, user.email) if mail["Subject"] == "Reset your password"]
    return link


def reset_by_confirmation(hub: RunningHub, user: User) -> str:
    """A visitor opens the confirmation link of an account that they did not create."""
    link = confirmation_of(hub, user)
    with hub.client() as client:
        led = submit(client, link, f"{link}/reset")
    assert led.status_code == 303, led.text
    location = str(led.headers["location"])
    assert location.startswith("/reset/")
    return location


@pytest.mark.one_engine
def test_o67_link_alone_does_not_confirm_the_address(hub: RunningHub) -> None:
    eve = create_user(hub, "eve", verified=False)
    link = confirmation_of(hub, eve)
    with hub.client() as victim, browser_of(hub, create_user(hub, "bob")) as elsewhere:
        for browser in (victim, elsewhere):
            assert browser.get(link).status_code == 200
            assert submit(browser, link).status_code == 422
            assert submit(browser, link, password="a guess").status_code == 422
        assert not is_verified(hub, eve)
        assert victim.get(link).status_code == 200, "a refused attempt leaves the link as it was"


@pytest.mark.one_engine
def test_o67_unconfirmed_address_cannot_be_exchanged(hub: RunningHub) -> None:
    boss, eve = create_user(hub, "boss"), create_user(hub, "eve", verified=False)
    client = create_exchange_app(hub, create_organization(hub, "acme", boss, eve="read"))
    with hub.client() as victim:
        submit(victim, confirmation_of(hub, eve))
    answer = send_exchange(client, eve.email)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.one_engine
@pytest.mark.parametrize("proof", ["session", "password", "password beside another's session"])
def test_o67_creator_who_confirms_loses_nothing(hub: RunningHub, proof: str) -> None:
    ada = create_user(hub, "ada", verified=False)
    link, belongings = confirmation_of(hub, ada), create_account_assets(hub, ada)
    with ExitStack() as stack:
        if proof == "session":
            response = submit(stack.enter_context(belongings.browser()), link)
        else:
            other = create_user(hub, "bob") if "another" in proof else None
            response = submit(stack.enter_context(browser_of(hub, other)), link, password=PASSWORD)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    assert is_verified(hub, ada)
    assert belongings.usable() == EVERYTHING


@pytest.mark.one_engine
def test_o67_password_guesses_on_the_confirmation_page_are_throttled(hub: RunningHub) -> None:
    eve = create_user(hub, "eve", verified=False)
    link = confirmation_of(hub, eve)
    with hub.client() as client:
        tries = [submit(client, link, password="a guess") for _ in range(11)]
        assert [answer.status_code for answer in tries] == [422] * 10 + [429]
        assert tries[-1].headers["retry-after"] == "900"
        assert submit(client, "/login", username="eve", password=PASSWORD).status_code == 429, "one count for both"
        hub.clock.advance(15 * 60)
        assert submit(client, link, password=PASSWORD).status_code == 303


@pytest.mark.one_engine
@pytest.mark.parametrize("way", [reset_by_mail, reset_by_confirmation])
def test_o67_reset_of_a_never_verified_account_ends_everything(hub: RunningHub, way) -> None:
    eve, bob = create_user(hub, "eve", verified=False), create_user(hub, "bob")
    left_behind, others = create_account_assets(hub, eve), create_account_assets(hub, bob)
    hub.clock.advance(1)
    link = way(hub, eve)
    with hub.client() as victim:
        assert "never confirmed" in victim.get(link).text
        assert submit(victim, link, password=NEW).headers["location"] == "/login"
        assert is_verified(hub, eve)
        assert submit(victim, "/login", username="eve", password=PASSWORD).status_code == 422
        assert submit(victim, "/login", username="eve", password=NEW).status_code == 303
    assert left_behind.usable() == set()
    assert others.usable() == EVERYTHING, "of other accounts nothing ends"
    told = mails_to(hub, eve.email)[-1]
    assert told["Subject"] == "Your password was changed"
    assert (
        "This address had never been confirmed, so everything created earlier was revoked: 1 session, "
        "1 personal token, 1 app token, 1 refresh token, 1 connected app, 1 registered app, 1 resource server, "
        "1 webhook, 1 invitation."
    ) in " ".join(told.get_content().split())


@pytest.mark.one_engine
def test_o67_reset_ends_apps_and_webhooks_of_organizations_without_other_members(hub: RunningHub) -> None:
    eve, bob = create_user(hub, "eve", verified=False), create_user(hub, "bob")
    alone, shared = create_organization(hub, "alone", eve), create_organization(hub, "shared", bob, eve="admin")
    apps = [create_app(hub, organization=organization) for organization in (alone, shared)]
    with browser_of(hub, eve) as intruder:
        for name in ("alone", "shared"):
            form = {"url": "https://ci.example/hook", "watched": f"org:{name}", "domains": ["repo"]}
            at = f"/organizations/{name}/settings/webhooks"
            made = submit(intruder, f"{at}/new", at, **form)
            assert made.status_code in (200, 303), made.text
    link = reset_by_mail(hub, eve)
    with hub.client() as victim:
        submit(victim, link, password=NEW)
        submit(victim, "/login", username="eve", password=NEW)
        with browser_of(hub, bob) as other:
            pages = [(victim, "alone"), (other, "shared")]
            listed = [browser.get(f"/organizations/{name}/settings/webhooks").text for browser, name in pages]
    assert ["ci.example" in page for page in listed] == [False, True]
    answers = [app.post("/oauth/introspect", {"token": "x"}).status_code for app in apps]
    assert answers == [401, 200], "the app of the organization that bob is in stays"


@pytest.mark.one_engine
def test_o67_reset_is_in_the_audit_logs_of_organizations(hub: RunningHub) -> None:
    eve, bob = create_user(hub, "eve", verified=False), create_user(hub, "bob")
    alone, shared = create_organization(hub, "alone", eve), create_organization(hub, "shared", bob, eve="admin")
    app = create_app(hub, organization=alone)
    with browser_of(hub, eve) as intruder:
        at = "/organizations/alone/settings/webhooks"
        submit(intruder, f"{at}/new", at, url="https://ci.example/hook", watched="org:alone", domains=["repo"])
        people = "/organizations/shared/settings/members"
        invited = submit(intruder, people, invitee="accomplice@example.org", role="admin")
        assert invited.status_code == 303, invited.text
    hub.clock.advance(60)
    link = reset_by_mail(hub, eve)
    with hub.client() as victim:
        submit(victim, link, password=NEW)
    why = "Password reset; the address of this account had never been confirmed."
    ended = [entry for entry in entries_of(hub, alone) if entry["data"].get("reason") == why]
    assert sorted((entry["type"], entry["message"]) for entry in ended) == [
        ("oauth.delete_app", "deleted the app Notebook"),
        ("webhook.delete", "deleted the webhook to ci.example"),
    ]
    assert {entry["data"].get("clientId") for entry in ended} == {app.id, None}
    there = [entry for entry in entries_of(hub, shared) if entry["data"].get("reason") == why]
    assert sorted((entry["type"], entry["message"]) for entry in there) == [
        ("org.remove_user", "left shared"),
        ("org.revoke_invitation", "withdrew the invitation for accomplice@example.org"),
    ]
    assert {(entry["author_id"], entry["ip"]) for entry in (*ended, *there)} == {(eve.id, "127.0.0.1")}


def test_o67_requests_in_flight_during_the_reset_are_rejected(hub: RunningHub) -> None:
    """The caller was authenticated before the reset, and the body was received after it."""
    eve = create_user(hub, "eve", verified=False)
    elsewhere = create_app(hub, create_user(hub, "developer"))
    actor = Actor(eve.name, eve.id, VISITOR.ip, credentials_version=eve.credentials_version)
    draft = App(client_id="", name="Left", redirect_uris=("https://left.example/",), scopes=("openid",))
    with hub.client() as victim:
        assert submit(victim, reset_by_confirmation(hub, eve), password=NEW).status_code == 303

    async def token(opened: Hub) -> None:
        await personal.create(opened.accounts, eve, "left", TokenRole.WRITE, VISITOR.ip)

    async def app(opened: Hub) -> None:
        await management.create(opened.oauth, Owner(user_id=eve.id), draft, actor)

    async def webhook(opened: Hub) -> None:
        wanted = WebhookRequest(url="https://left.example/hook", watched=[("user", "eve")])
        await lifecycle.create(opened.webhooks, Owner(user_id=eve.id), wanted, actor)

    async def consent(opened: Hub) -> None:
        access, ticked = AccessRequest(elsewhere.app, elsewhere.app.scopes), Selection(elsewhere.app.scopes, ())
        await opened.db.write(lambda tx: store_approval(tx, access, Person(eve, (), {}), ticked, opened.clock()))

    for under_way in (token, app, webhook, consent):
        with pytest.raises(Unauthorized):
            hub.call(under_way)


@pytest.mark.one_engine
def test_o67_confirmation_link_allows_one_reset(hub: RunningHub) -> None:
    eve = create_user(hub, "eve", verified=False)
    link = confirmation_of(hub, eve)
    with ExitStack() as stack:
        visitors = [stack.enter_context(hub.client()) for _ in range(6)]
        answers = run_concurrently([fill_form(visitor, link, f"{link}/reset") for visitor in visitors])
        assert sorted(answer.status_code for answer in answers) == [303] + [404] * 5
        assert not is_verified(hub, eve), "nothing is proven before the password is set"
        assert visitors[0].get(link).status_code == 404


@pytest.mark.one_engine
def test_o67_opening_the_pages_of_a_link_changes_nothing(hub: RunningHub) -> None:
    """Mail scanners open links, and links on the page behind them."""
    eve = create_user(hub, "eve", verified=False)
    link = confirmation_of(hub, eve)
    with hub.client() as scanner:
        for method in ("GET", "HEAD"):
            assert scanner.request(method, link).status_code == 200
            assert scanner.request(method, f"{link}/reset").status_code == 405
        assert httpx.post(f"{hub.url}{link}/reset", data={"csrf": "x"}).status_code == 403
        assert scanner.get(link).status_code == 200
    assert not is_verified(hub, eve)


@pytest.mark.one_engine
def test_o67_first_used_confirmation_ends_older_ones(hub: RunningHub) -> None:
    """Otherwise each would be a reset link that is valid for a day."""
    ada = create_user(hub, "ada", verified=False)
    hub.clock.advance(1)
    with browser_of(hub, ada) as browser:
        assert submit(browser, "/", "/settings/email/confirmation").status_code == 303
        first, second = (link_in(mail) for mail in mails_to(hub, ada.email, 2))
        hidden = Page(browser.get(first)).hidden()
        assert submit(browser, second).status_code == 303
        assert browser.get(first).status_code == 404
        assert browser.post(f"{first}/reset", data=hidden).status_code == 404


def test_o67_concurrent_confirmation_and_reset_leave_one_owner(hub: RunningHub) -> None:
    """Either the creator was first and retains the tokens, or the reset was first and ended them."""
    for number in range(4):
        eve = create_user(hub, f"eve{number}", verified=False)
        link = confirmation_of(hub, eve)
        belongings = create_account_assets(hub, eve)
        reset = reset_by_mail(hub, eve)
        with hub.client() as victim, belongings.browser() as creator:
            confirm = fill_form(creator, link)
            confirmed, changed = run_concurrently([confirm, fill_form(victim, reset, password=NEW)])
        assert changed.status_code == 303
        assert confirmed.status_code in (303, 401, 404, 422)
        assert ("personal token" in belongings.usable()) is (confirmed.status_code == 303)


@pytest.mark.one_engine
@pytest.mark.parametrize("verified", [True, False])
def test_o67_confirming_a_new_address_requires_its_account(hub: RunningHub, verified: bool) -> None:
    """An account is being moved to a stranger's address: the stranger's click neither confirms it nor opens the
    account.
    """
    eve = create_user(hub, "eve", verified=verified)
    with browser_of(hub, eve) as attacker:
        form = {"email": "victim@example.org", "password": PASSWORD}
        assert submit(attacker, "/settings/profile", "/settings/email", **form).status_code == 303
        link = link_in(mails_to(hub, "victim@example.org")[0])
        with hub.client() as victim:
            hidden = Page(victim.get(link)).hidden()
            refused = submit(victim, link)
            assert refused.status_code == 422
            assert NO_PASSWORD in refused.text
            assert victim.post(f"{link}/reset", data=hidden).status_code in (404, 405), "of another's account"
            assert stored(hub, eve).email == "eve@example.org"
            assert victim.get(link).status_code == 200
        assert submit(attacker, link).status_code == 303
    assert stored(hub, eve).email == "victim@example.org"


@pytest.mark.one_engine
def test_o67_account_without_a_password_sets_one(hub: RunningHub) -> None:
    """The operator created the account; its user gets in by the link in the mail."""

    async def work(opened: Hub) -> None:
        await opened.db.write(lambda tx: tx.exec("UPDATE users SET password_hash = NULL"))

    ada = create_user(hub, "ada", verified=False)
    hub.call(work)
    with hub.client() as client:
        shown = client.get(confirmation_of(hub, ada)).text
        assert 'name="password"' not in shown
        assert submit(client, reset_by_confirmation(hub, ada), password=NEW).status_code == 303
        assert submit(client, "/login", username="ada", password=NEW).status_code == 303
    assert is_verified(hub, ada)
