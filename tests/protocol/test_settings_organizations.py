"""A user's organizations: role, invitations, leaving."""

import re

import pytest
from tests.bed.organizations import add_to_many_organizations
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, post, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM

pytestmark = pytest.mark.one_engine

PATH = "/settings/organizations"
ACCEPT = re.compile(rf'action="({PATH}/invitations/[0-9a-f]{{24}}/accept)"')
DECLINE = re.compile(rf'action="({PATH}/invitations/[0-9a-f]{{24}}/decline)"')


def invite(hub: RunningHub, organization: Organization, invitee: str, role: Role = Role.WRITE) -> None:
    hub.call(lambda opened: invitations.invite(opened.accounts, organization, invitee, role, SYSTEM))


def roles(hub: RunningHub, token: str) -> dict[str, str]:
    with api(hub, token) as program:
        return {org["name"]: org["roleInOrg"] for org in program.get("/api/whoami-v2").json()["orgs"]}


def test_organizations_are_listed_with_the_role(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="contributor")
    with browser_of(hub, ada) as member, browser_of(hub, create_user(hub, "eve")) as other:
        page = member.get(PATH).text
        assert 'href="/acme"' in page
        assert "contributor" in page
        assert f'href="{PATH}/acme/leave"' in page
        empty = other.get(PATH).text
        assert "acme" not in empty
        assert 'href="/organizations/new"' in empty


def test_long_list_has_pages(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    add_to_many_organizations(hub, ada, 120)
    with browser_of(hub, ada) as client:

        def names(page: str) -> list[str]:
            return re.findall(rf'href="{PATH}/(\w+)/leave"', page)

        def way(page: str, word: str) -> str | None:
            found = re.search(rf'href="([^"]+)">{word}</a>', page)
            return f"{PATH}{found.group(1)}" if found else None

        first = client.get(PATH).text
        second = client.get(way(first, "Next") or "").text
        third = client.get(way(second, "Next") or "").text
        assert names(first) + names(second) + names(third) == [f"org{number:03x}" for number in range(120)]
        assert (way(first, "Previous"), way(third, "Next")) == (None, None)
        assert names(client.get(way(third, "Previous") or "").text) == names(second)
        assert "120 in all" in third


def test_invitation_by_name_is_accepted(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    invite(hub, create_organization(hub, "acme", bob), "ada")
    token = create_token(hub, ada)
    with browser_of(hub, ada) as client:
        (address,) = ACCEPT.findall(client.get(PATH).text)
        assert submit(client, PATH, address).status_code == 303
        assert roles(hub, token) == {"acme": "write"}
        page = client.get(PATH).text
        assert not ACCEPT.findall(page)
        assert post(client, address).status_code == 404, "it was used"


def test_invitation_by_address_needs_a_verified_address(hub: RunningHub) -> None:
    acme = create_organization(hub, "acme", create_user(hub, "bob"))
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve", verified=False)
    invite(hub, acme, ada.email)
    invite(hub, acme, eve.email)
    with browser_of(hub, ada) as proven, browser_of(hub, eve) as unproven:
        assert len(ACCEPT.findall(proven.get(PATH).text)) == 1
        assert not ACCEPT.findall(unproven.get(PATH).text)


def test_invitation_is_declined(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    invite(hub, create_organization(hub, "acme", bob), "ada")
    token = create_token(hub, ada)
    with browser_of(hub, ada) as client:
        (address,) = DECLINE.findall(client.get(PATH).text)
        assert submit(client, PATH, address).status_code == 303
        assert "Invitation declined." in client.get(PATH).text
        assert post(client, address).status_code == 404
    assert roles(hub, token) == {}


def test_another_users_invitation_is_404(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    invite(hub, create_organization(hub, "acme", create_user(hub, "bob")), "ada")
    with browser_of(hub, ada) as invited, browser_of(hub, eve) as other:
        page = invited.get(PATH).text
        for (address,) in (ACCEPT.findall(page), DECLINE.findall(page)):
            assert post(other, address).status_code == 404
        assert ACCEPT.findall(invited.get(PATH).text) == ACCEPT.findall(page)
    assert roles(hub, create_token(hub, eve)) == {}


def test_leaving_needs_confirmation_and_takes_effect_at_once(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="write")
    token = create_token(hub, ada)
    with browser_of(hub, ada) as client:
        address = f"{PATH}/acme/leave"
        assert "Leave <bdi>acme</bdi>" in client.get(address).text
        assert roles(hub, token) == {"acme": "write"}
        left = submit(client, address)
        assert (left.status_code, left.headers["location"]) == (303, PATH)
        assert roles(hub, token) == {}
        assert "You left acme." in client.get(PATH).text
        assert client.get(address).status_code == 404


def test_admins_leave_on_the_same_page(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="admin")
    with browser_of(hub, ada) as client:
        members = client.get("/organizations/acme/settings/members").text
        assert f'href="{PATH}/acme/leave">Leave' in members
        assert 'href="/organizations/acme/settings/members/ada/remove"' not in members
        assert "Invitations that you sent are withdrawn." in client.get(f"{PATH}/acme/leave").text


def test_last_admin_cannot_leave(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    with browser_of(hub, ada) as client:
        refused = submit(client, f"{PATH}/acme/leave")
        assert refused.status_code == 409
        assert '<a href="#leave">An organization needs an admin. Make someone else an admin first.</a>' in refused.text
        assert '<form class="row" id="leave"' in refused.text
        assert "autofocus" in refused.text
        assert "<title>Error: " in refused.text
    assert roles(hub, create_token(hub, ada)) == {"acme": "admin"}


def test_organization_of_others_is_404(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "bob"))
    with browser_of(hub, create_user(hub, "ada")) as client:
        for name in ("acme", "nothing", "%00"):
            assert client.get(f"{PATH}/{name}/leave").status_code in (400, 404)
