"""The members page: invite, change roles, remove, withdraw."""

import re

import httpx
import pytest
from tests.bed.organizations import add_many_members, role_in
from tests.bed.people import browser_of, create_organization, create_user, link_in, mails_to, post, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

MEMBERS = "/organizations/acme/settings/members"
LAST_ADMIN = "An organization needs an admin. Make someone else an admin first."
WITHDRAW = re.compile(r'action="(/organizations/acme/settings/invitations/[0-9a-f]{24}/withdraw)"')


def set_role(client: httpx.Client, name: str, role: str) -> httpx.Response:
    return submit(client, MEMBERS, f"{MEMBERS}/{name}/role", role=role)


def invite(client: httpx.Client, invitee: str, role: str = "read") -> httpx.Response:
    return submit(client, MEMBERS, invitee=invitee, role=role)


@pytest.mark.one_engine
def test_user_is_invited_by_name(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as admin, browser_of(hub, bob) as invited:
        assert invite(admin, "BOB", "write").status_code == 303
        page = admin.get(MEMBERS).text
        assert "Invited BOB. An e-mail is on its way." in page
        assert len(WITHDRAW.findall(page)) == 1
        (mail,) = mails_to(hub, "bob@example.org")
        assert "ada invites you to acme." in mail.get_content()
        assert role_in(hub, acme, bob) is None
        assert submit(invited, link_in(mail), decision="accept").status_code == 303
        assert role_in(hub, acme, bob) == "write"
        assert not WITHDRAW.findall(admin.get(MEMBERS).text)
        again = invite(admin, "bob")
        assert again.status_code == 422
        assert "bob is already a member." in again.text


@pytest.mark.one_engine
def test_invitation_by_address_does_not_reveal_accounts(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        said = []
        for address in ("bob@example.org", "nobody@example.org"):
            assert invite(client, address).status_code == 303
            said.append(client.get(MEMBERS).text.replace("<wbr>", "").count(address))
        assert said == [3, 3], "flash, row, and the row's button"
        assert len(mails_to(hub, "nobody@example.org")) == 1


@pytest.mark.one_engine
def test_verified_address_of_a_member_cannot_be_invited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_user(hub, "carol", verified=False)
    create_organization(hub, "acme", ada, bob="read", carol="read")
    with browser_of(hub, ada) as client:
        assert "bob is already a member." in invite(client, "BOB@example.org").text
        assert invite(client, "carol@example.org").status_code == 303, "who has not proven it does not have it"


@pytest.mark.one_engine
@pytest.mark.parametrize("invitee", ["", "nobody", "not an address@", "a@b", "x" * 500])
def test_invalid_invitees_are_rejected(hub: RunningHub, invitee: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        response = invite(client, invitee, "write")
        assert response.status_code == 422
        assert 'href="#invitee"' in response.text
        assert '<option value="write" selected>' in response.text
        assert not WITHDRAW.findall(response.text)


def test_mails_to_one_address_are_limited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        statuses = [invite(client, "bob@example.com").status_code for _ in range(6)]
        assert statuses == [303] * 5 + [429]
        assert len(WITHDRAW.findall(client.get(MEMBERS).text)) == 1, "a new invitation replaces the one before"


@pytest.mark.one_engine
def test_withdrawn_invitation_is_invalid(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as admin, browser_of(hub, bob) as invited:
        invite(admin, "bob")
        (address,) = WITHDRAW.findall(admin.get(MEMBERS).text)
        link = link_in(mails_to(hub, "bob@example.org")[0])
        assert submit(admin, MEMBERS, address).status_code == 303
        assert invited.get(link).status_code == 404
        assert post(admin, address).status_code == 404, "only once"
        assert role_in(hub, acme, bob) is None


@pytest.mark.one_engine
def test_invitation_of_another_organization_cannot_be_withdrawn(hub: RunningHub) -> None:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada)
    create_organization(hub, "evil", eve)
    with browser_of(hub, ada) as admin, browser_of(hub, eve) as attacker:
        invite(admin, "bob@example.com")
        (address,) = WITHDRAW.findall(admin.get(MEMBERS).text)
        stolen = address.replace("/acme/", "/evil/")
        assert post(attacker, stolen).status_code == 404
        assert WITHDRAW.findall(admin.get(MEMBERS).text) == [address]


def test_expired_invitation_is_not_listed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        invite(client, "bob@example.com")
        hub.clock.advance(7 * 24 * 60 * 60)
        assert not WITHDRAW.findall(client.get(MEMBERS).text)


@pytest.mark.one_engine
def test_role_is_changed(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with browser_of(hub, ada) as client:
        for role in ("contributor", "write", "admin"):
            assert set_role(client, "bob", role).status_code == 303
            assert role_in(hub, acme, bob) == role
        assert set_role(client, "bob", "owner").status_code == 422
        assert submit(client, MEMBERS, f"{MEMBERS}/bob/role").status_code == 422
        assert role_in(hub, acme, bob) == "admin"
        for nobody in ("nobody", "acme"):
            assert post(client, f"{MEMBERS}/{nobody}/role", role="read").status_code == 404


@pytest.mark.one_engine
def test_admin_who_steps_down_leaves_the_settings(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="admin")
    with browser_of(hub, ada) as client:
        response = set_role(client, "ada", "read")
        assert (response.status_code, response.headers["location"]) == (303, "/acme")
        assert "Your role in acme is now read." in client.get("/acme").text
        assert client.get(MEMBERS).status_code == 403


@pytest.mark.one_engine
def test_last_admin_cannot_be_removed_or_demoted(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with browser_of(hub, ada) as client:
        for refused in (
            set_role(client, "ada", "write"),
            submit(client, f"{MEMBERS}/ada/remove"),
        ):
            assert refused.status_code == 409
            assert LAST_ADMIN in refused.text
            assert "<title>Error: " in refused.text
        assert role_in(hub, acme, ada) == "admin"
        assert set_role(client, "bob", "admin").status_code == 303
        left = submit(client, f"{MEMBERS}/ada/remove")
        assert (left.status_code, left.headers["location"]) == (303, "/acme")
        assert role_in(hub, acme, ada) is None


@pytest.mark.one_engine
def test_disabled_admin_does_not_count_as_an_admin(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="admin")
    hub.call(lambda opened: operator_actions.disable(opened.accounts, bob))
    with browser_of(hub, ada) as client:
        assert submit(client, f"{MEMBERS}/ada/remove").status_code == 409
        assert submit(client, f"{MEMBERS}/bob/remove").status_code == 303


@pytest.mark.one_engine
def test_removal_asks_for_confirmation(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with browser_of(hub, ada) as client:
        assert f'href="{MEMBERS}/bob/remove"' in client.get(MEMBERS).text
        page = client.get(f"{MEMBERS}/bob/remove").text
        assert '<button class="button button-danger">Remove bob</button>' in page
        assert role_in(hub, acme, bob) == "write"
        response = submit(client, f"{MEMBERS}/bob/remove")
        assert (response.status_code, response.headers["location"]) == (303, MEMBERS)
        assert role_in(hub, acme, bob) is None
        assert client.get(f"{MEMBERS}/bob/remove").status_code == 404


@pytest.mark.one_engine
@pytest.mark.parametrize("lost_by", ["removal", "demotion"])
def test_invitations_of_a_removed_admin_are_withdrawn(hub: RunningHub, lost_by: str) -> None:
    """Otherwise an admin who expects to be removed could invite another account of theirs."""
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="admin")
    with browser_of(hub, ada) as admin, browser_of(hub, eve) as attacker:
        invite(attacker, "eve2@example.com", "admin")
        invite(admin, "bob@example.com")
        assert len(WITHDRAW.findall(admin.get(MEMBERS).text)) == 2
        link = link_in(mails_to(hub, "eve2@example.com")[0])
        if lost_by == "removal":
            assert submit(admin, f"{MEMBERS}/eve/remove").status_code == 303
        else:
            assert set_role(admin, "eve", "read").status_code == 303
        assert attacker.get(link).status_code == 404
        assert len(WITHDRAW.findall(admin.get(MEMBERS).text)) == 1


@pytest.mark.one_engine
def test_accepting_an_invitation_ends_the_others(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as admin, browser_of(hub, bob) as member:
        invite(admin, "bob")
        hub.clock.advance(1)
        invite(admin, "bob@example.org")
        by_name, by_address = (link_in(mail) for mail in mails_to(hub, "bob@example.org", 2))
        assert submit(member, by_name, decision="accept").status_code == 303
        assert member.get(by_address).status_code == 404
        assert submit(admin, f"{MEMBERS}/bob/remove").status_code == 303
        assert member.get(by_address).status_code == 404


def named_on(page: httpx.Response) -> list[str]:
    return re.findall(r'<td><span class="who">.*?<a href="/([^"]+)">', page.text)


@pytest.mark.parametrize("address", [MEMBERS, "/organizations/acme/members"])
def test_long_list_has_pages_and_a_search(hub: RunningHub, address: str) -> None:
    ada = create_user(hub, "ada")
    add_many_members(hub, create_organization(hub, "acme", ada), 120)
    with browser_of(hub, ada) as client:
        found, page = [], client.get(address)
        while True:
            found += named_on(page)
            next_page = re.search(r'href="([^"]+)">Next</a>', page.text)
            if next_page is None:
                break
            page = client.get(next_page.group(1).replace("&amp;", "&"))
        assert found == ["ada", *[f"M{number:03x}" for number in range(1, 121)]]
        assert f'href="{address}">First</a>' in page.text
        assert named_on(client.get(address, params={"search": "m01"})) == [f"M01{digit:x}" for digit in range(16)]
        assert len(named_on(client.get(address, params={"search": "Ünal 05"}))) == 16
        for nothing in ("%", "_", "m0_", "zzz"):
            page = client.get(address, params={"search": nothing})
            assert not named_on(page)
            assert "Nothing matches." in page.text
        assert client.get(address, params={"cursor": "nonsense"}).status_code == 400


def way(page: httpx.Response, word: str) -> list[str]:
    """Where the links with this text lead: to a page of members, and to one of invitations."""
    return [address.replace("&amp;", "&") for address in re.findall(rf'href="([^"]+)">{word}</a>', page.text)]


@pytest.mark.one_engine
@pytest.mark.parametrize("address", [MEMBERS, "/organizations/acme/members"])
def test_first_page_retains_the_search(hub: RunningHub, address: str) -> None:
    ada = create_user(hub, "ada")
    add_many_members(hub, create_organization(hub, "acme", ada), 120)
    with browser_of(hub, ada) as client:
        (onward,) = way(client.get(address, params={"search": "m0"}), "Next")
        (first,) = way(client.get(onward), "First")
        assert first == f"{address}?search=m0"


@pytest.mark.one_engine
def test_saved_role_leads_back_to_the_same_list(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "m0last")
    add_many_members(hub, create_organization(hub, "acme", ada, m0last="read"), 60)
    action = f"{MEMBERS}/m0last/role"
    with browser_of(hub, ada) as client:
        (here,) = way(client.get(MEMBERS, params={"search": "m0"}), "Next")
        assert submit(client, here, action, role="write").headers["location"] == here
        for elsewhere in ("https://evil.example/", "//evil.example", "/theme", f"{MEMBERS}@evil"):
            assert post(client, action, role="read", back=elsewhere).headers["location"] == MEMBERS


@pytest.mark.one_engine
def test_admins_find_a_member_by_address(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    with browser_of(hub, ada) as client:
        assert named_on(client.get(MEMBERS, params={"search": "Bob@example.org"})) == ["bob"]
        assert named_on(client.get(MEMBERS, params={"search": "@example.org"})) == []


@pytest.mark.one_engine
def test_list_of_members_is_for_members(hub: RunningHub) -> None:
    ada, bob, eve = create_user(hub, "ada"), create_user(hub, "bob"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, bob="read")
    roster = "/organizations/acme/members"
    with browser_of(hub, bob) as member, browser_of(hub, eve) as stranger, hub.client() as visitor:
        page = member.get(roster)
        assert named_on(page) == ["ada", "bob"]
        assert "@example.org" not in page.text
        assert "admin" not in page.text.lower().split("<main")[1], "roles are for admins"
        assert stranger.get(roster).status_code == 403
        assert visitor.get(roster).status_code == 303


def fill_invitations(hub: RunningHub, organization: Organization, count: int) -> None:
    row = {"org": organization.id, "until": hub.clock() + 1_000_000}

    async def unit(tx: Tx) -> None:
        await tx.exec_many(
            """
            INSERT INTO invitations (id, key, org_id, email, role, created_at, expires_at)
            VALUES (:id, :key, :org, :email, 1, 1, :until)
            """,
            [{**row, "id": f"{n:024x}", "key": n.to_bytes(4), "email": f"{n}@x.org"} for n in range(count)],
        )

    hub.call(lambda opened: opened.db.write(unit))


@pytest.mark.one_engine
def test_later_pages_of_invitations_lead_back(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    fill_invitations(hub, create_organization(hub, "acme", ada), 120)
    with browser_of(hub, ada) as client:
        first = client.get(MEMBERS, params={"search": "ada"})
        assert way(first, "First") == []
        (here,) = way(first, "Next")
        second = client.get(here)
        assert way(second, "First") == [f"{MEMBERS}?search=ada"]
        address = WITHDRAW.findall(second.text)[0]
        assert submit(client, here, address).headers["location"] == here


def test_open_invitations_are_limited(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    fill_invitations(hub, create_organization(hub, "acme", ada), 500)
    with browser_of(hub, ada) as client:
        refused = invite(client, "one-more@example.org")
        assert refused.status_code == 422
        assert "500 invitations are open. Withdraw some first." in refused.text
        seen: set[str] = set()
        address: str | None = MEMBERS
        while address:
            page = client.get(address).text
            seen |= set(WITHDRAW.findall(page))
            found = re.search(r'href="([^"]+invited=[^"]+)">Next</a>', page)
            address = found.group(1).replace("&amp;", "&") if found else None
        assert len(seen) == 500


@pytest.mark.one_engine
def test_operator_can_add_an_invited_user(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        invite(client, "bob")

        async def work(opened: Hub) -> None:
            await members.add(opened.accounts, acme, bob, Role.WRITE, SYSTEM)

        hub.call(work)
        assert not WITHDRAW.findall(client.get(MEMBERS).text)
        assert role_in(hub, acme, bob) == "write"
