"""O44: invitations of an admin whom the operator disables are withdrawn."""

import re

import httpx
import pytest
from tests.bed.people import (
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    link_in,
    mails_to,
    post,
    submit,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions

MEMBERS = "/organizations/acme/settings/members"
LOG = "/api/organizations/acme/audit-log/export"


def invite(browser: httpx.Client, invitee: str) -> None:
    assert submit(browser, MEMBERS, MEMBERS, invitee=invitee, role="admin").status_code == 303


@pytest.mark.one_engine
def test_o44_invitations_of_a_disabled_admin_are_withdrawn(hub: RunningHub) -> None:
    ada, eve, sock, oper = (create_user(hub, name, operator=name == "oper") for name in ("ada", "eve", "sock", "oper"))
    create_organization(hub, "acme", ada, eve="admin")
    with browser_of(hub, eve) as attacker, browser_of(hub, ada) as admin:
        invite(attacker, "sock")
        invite(attacker, "new@example.org")
        invite(admin, "honest@example.org")
    with (
        browser_of(hub, sock) as accomplice,
        browser_of(hub, oper) as operator,
        api(hub, create_token(hub, ada)) as script,
    ):
        (waits,) = re.findall(r"invitations/([0-9a-f]{24})/accept", accomplice.get("/settings/organizations").text)
        assert submit(operator, "/operator/users", "/operator/users/eve/disable").status_code == 303
        accepted = post(accomplice, f"/settings/organizations/invitations/{waits}/accept")
        assert accepted.status_code == 404
        links = [link_in(mails_to(hub, f"{name}@example.org")[-1]) for name in ("new", "honest")]
        assert [accomplice.get(link).status_code for link in links] == [404, 200], "those of others stay"
        assert {one["user"] for one in script.get("/api/organizations/acme/members").json()} == {"ada", "eve"}
        entries = script.get(LOG, params={"q": "type:org.revoke_invitation"}).json()
    said = {one["message"] for one in entries}
    assert said == {"withdrew the invitation for sock", "withdrew the invitation for new@example.org"}
    assert {one["author"]["user"] for one in entries} == {"oper"}


@pytest.mark.one_engine
def test_o44_invitations_do_not_return_with_an_enabled_account(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="admin")
    with browser_of(hub, eve) as attacker:
        invite(attacker, "new@example.org")
    hub.call(lambda opened: operator_actions.disable(opened.accounts, eve))
    hub.call(lambda opened: operator_actions.enable(opened.accounts, eve))
    with hub.client() as visitor:
        assert visitor.get(link_in(mails_to(hub, "new@example.org")[-1])).status_code == 404
