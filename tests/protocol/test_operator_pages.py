"""The operator's pages: who has access, and what the buttons do."""

import re

import pytest
from tests.bed.organizations import entries_of
from tests.bed.people import (
    PASSWORD,
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
    wait_for_mail,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store

pytestmark = pytest.mark.one_engine

USERS, ORGANIZATIONS = "/operator/users", "/operator/organizations"
PAGES = ["/operator", USERS, ORGANIZATIONS]
POSTS = [*(f"{USERS}/bob/{deed}" for deed in ("verify", "disable", "enable", "reset")), f"{ORGANIZATIONS}/acme"]


def test_only_operators_have_access(hub: RunningHub) -> None:
    ada, operator = create_user(hub, "ada"), create_user(hub, "olga", operator=True)
    create_user(hub, "bob")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as admin, browser_of(hub, operator) as inside, hub.client() as visitor:
        for address in PAGES:
            assert inside.get(address).status_code == 200
            refused = admin.get(address)
            assert refused.status_code == 403
            assert "Only an operator" in refused.text
            assert visitor.get(address).headers["location"].startswith("/login?next=")
        for address in POSTS:
            assert post(admin, address, plan="enterprise").status_code == 403
            assert post(visitor, address, plan="enterprise").status_code == 401
    with browser_of(hub, operator) as inside:
        assert '<option value="free" selected>' in inside.get(ORGANIZATIONS).text


def test_operators_token_opens_no_page(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "olga", operator=True))) as client:
        assert [client.get(address).status_code for address in PAGES] == [303] * 3


@pytest.mark.parametrize("address", POSTS)
def test_form_without_csrf_token_changes_nothing(hub: RunningHub, address: str) -> None:
    create_user(hub, "bob", verified=False)
    create_organization(hub, "acme", create_user(hub, "ada"))
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert client.post(address, data={"plan": "team"}).status_code == 403
        assert "Disabled</span>" not in client.get(USERS).text
        assert "Not verified" in client.get(USERS).text


def test_overview_shows_counts(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob", verified=False)
    create_organization(hub, "acme", ada)
    create_organization(hub, "big", bob, plan="enterprise")
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        submit(client, USERS, f"{USERS}/bob/disable")
        wait_for_mail(hub)
        page = re.sub(r"</?a[^>]*>", "", client.get("/operator").text)
        said = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))
        # Their values depend on the machine (test_operator_state.py).
        del said["Database"], said["Used"]
        assert said == {
            "Users": "3",
            "E-mail not verified": "1",
            "Disabled": "1",
            "Operators": "1",
            "Organizations": "2",
            "On the free plan": "1",
            "On the team plan": "0",
            "On the enterprise plan": "1",
            "Mail waiting": "0",
            "Sign-up": "Open to everyone",
            "Waiting": "0",
            "Events to match with webhooks": "0",
            "Oldest due": "Nothing is due",
            "Attempts in the last minute": "0",
            "Processes that deliver": "0",
        }


def test_disabled_account_is_locked_out(hub: RunningHub) -> None:
    bob = create_user(hub, "bob")
    token = create_token(hub, bob)
    with browser_of(hub, create_user(hub, "olga", operator=True)) as operator, browser_of(hub, bob) as browser:
        assert browser.get("/settings/profile").status_code == 200
        response = submit(operator, USERS, f"{USERS}/bob/disable")
        assert (response.status_code, response.headers["location"]) == (303, USERS)
        page = operator.get(USERS).text
        assert "Disabled bob. Sessions and tokens no longer work." in page
        assert f'action="{USERS}/bob/enable"' in page
        assert f'action="{USERS}/bob/disable"' not in page
        assert browser.get("/settings/profile").status_code == 303
        with api(hub, token) as program, hub.client() as visitor:
            assert program.get("/api/whoami-v2").status_code == 401
            assert submit(visitor, "/login", username="bob", password=PASSWORD).status_code == 403
            assert submit(operator, USERS, f"{USERS}/bob/enable").status_code == 303
            assert program.get("/api/whoami-v2").status_code == 200
            assert browser.get("/settings/profile").status_code == 303, "the old session does not come back"


def test_operators_cannot_disable_themselves(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert f'action="{USERS}/olga/disable"' not in client.get(USERS).text
        for spelled in ("olga", "OLGA"):
            refused = post(client, f"{USERS}/{spelled}/disable")
            assert refused.status_code == 409
            assert "You cannot disable your own account. Another operator can." in refused.text
        assert client.get(USERS).status_code == 200


def test_operator_can_verify_an_address(hub: RunningHub) -> None:
    bob = create_user(hub, "bob", verified=False)
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert "Not verified" in client.get(USERS).text
        assert submit(client, USERS, f"{USERS}/bob/verify").status_code == 303
        page = client.get(USERS).text
        assert "bob@example.org is now verified." in page
        assert "Not verified" not in page
        assert f'action="{USERS}/bob/verify"' not in page
    found = hub.call(lambda opened: store.user(opened.db, bob.id))
    assert found is not None
    assert found.email_verified_at is not None


def test_reset_link_is_mailed_and_not_shown(hub: RunningHub) -> None:
    create_user(hub, "bob")
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert submit(client, USERS, f"{USERS}/bob/reset").status_code == 303
        page = client.get(USERS).text
        assert "A reset link is on its way to bob@example.org." in page
        link = link_in(mails_to(hub, "bob@example.org")[0])
        assert link.startswith("/reset/")
        assert link not in page
        assert client.get(link).status_code == 200
        statuses = [submit(client, USERS, f"{USERS}/bob/reset").status_code for _ in range(5)]
        assert statuses == [303] * 4 + [429]


def test_unknown_accounts_are_404(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "ada"))
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        for address in (f"{USERS}/nobody/disable", f"{USERS}/acme/disable", f"{ORGANIZATIONS}/ada"):
            assert post(client, address, plan="team").status_code == 404


def test_plan_and_billing_are_set(hub: RunningHub) -> None:
    acme = create_organization(hub, "acme", create_user(hub, "ada"))
    operator = create_user(hub, "olga", operator=True)
    with browser_of(hub, operator) as client:
        one = f"{ORGANIZATIONS}/acme"
        assert submit(client, ORGANIZATIONS, one, plan="enterprise", can_pay="on").status_code == 303
        page = client.get(ORGANIZATIONS).text
        assert '<option value="enterprise" selected>' in page
        assert 'name="can_pay" value="on" checked' in page
        assert submit(client, ORGANIZATIONS, one, plan="enterprise", can_pay="on").status_code == 303
        assert submit(client, ORGANIZATIONS, one, plan="gold").status_code == 422
        changes = [entry for entry in entries_of(hub, acme) if entry["author_id"] == operator.id]
        assert sorted(entry["type"] for entry in changes) == ["org.set_billing", "org.set_plan"]
        assert {entry["ip"] for entry in changes} == {"127.0.0.1"}


def test_stale_form_does_not_undo_a_concurrent_change(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    profile, one = "/organizations/acme/settings/profile", f"{ORGANIZATIONS}/acme"
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client, browser_of(hub, ada) as admin:
        set_plan = fill_form(client, ORGANIZATIONS, one, plan="team")
        set_billing = fill_form(client, ORGANIZATIONS, one, plan="free", can_pay="on")
        assert submit(admin, profile, "/organizations/acme/settings/billing", can_pay="on").status_code == 303
        assert set_plan().status_code == 303
        page = client.get(ORGANIZATIONS).text
        assert '<option value="team" selected>' in page
        assert 'name="can_pay" value="on" checked' in page
        assert set_billing().status_code == 303
        assert '<option value="team" selected>' in client.get(ORGANIZATIONS).text


def test_lists_have_search_and_pages(hub: RunningHub) -> None:
    operator = create_user(hub, "olga", operator=True)
    for number in range(51):
        user = create_user(hub, f"user{number:02}")
        hub.clock.advance(1)
    for number in range(51):
        create_organization(hub, f"org{number:02}", user)
        hub.clock.advance(1)
    with browser_of(hub, operator) as client:
        for address, prefix, count in ((USERS, "user", 51), (ORGANIZATIONS, "org", 51)):
            first = client.get(address).text
            names = re.findall(rf'<a href="/({prefix}\d+)"><bdi>', first)
            (onward,) = re.findall(r'href="([^"]+)">Next</a>', first)
            second = client.get(onward.replace("&amp;", "&")).text
            names += re.findall(rf'<a href="/({prefix}\d+)"><bdi>', second)
            assert names == [f"{prefix}{number:02}" for number in range(count)]
            assert "Next</a>" not in second
            (onward,) = re.findall(r'href="([^"]+)">Next</a>', client.get(address, params={"search": prefix}).text)
            later = client.get(onward.replace("&amp;", "&")).text
            assert f'href="{address}?search={prefix}">First</a>' in later
            found = client.get(address, params={"search": f"{prefix.upper()}07"}).text
            assert re.findall(rf'<a href="/({prefix}\d+)"><bdi>', found) == [f"{prefix}07"]
            assert "Nothing matches." in client.get(address, params={"search": "100%"}).text
        assert ">user08<" in client.get(USERS, params={"search": "08@EXAMPLE"}).text


def test_button_leads_back_to_the_same_list(hub: RunningHub) -> None:
    create_user(hub, "bob")
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        here = f"{USERS}?search=bo"
        assert submit(client, here, f"{USERS}/bob/disable").headers["location"] == here
        for elsewhere in ("https://evil.example/", "//evil.example", "/theme", "/operator/users@evil"):
            answer = post(client, f"{USERS}/bob/enable", back=elsewhere)
            assert answer.headers["location"] == USERS
