"""Concurrent changes of members, from two hubs on one database, are serialized."""

from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.organizations import admins_of, entries_of, role_in
from tests.bed.people import (
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    fill_form,
    link_in,
    mails_to,
    submit,
)
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import invitations, members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import Conflict, HubError
from hubgate.server.resources import Hub

ROUNDS = 15
MEMBERS = "/api/organizations/acme/members"

Hubs = tuple[RunningHub, RunningHub]


def demote(client: httpx.Client, name: str) -> int:
    return client.put(f"{MEMBERS}/{name}/role", json={"role": "write"}).status_code


def restore(hub: RunningHub, acme: Organization, *users: User) -> None:
    """Makes all of them admins again."""

    async def work(opened: Hub) -> None:
        for user in users:
            try:
                await members.add(opened.accounts, acme, user, Role.ADMIN, SYSTEM)
            except Conflict:
                await members.change_role(opened.accounts, acme, user, Role.ADMIN, SYSTEM)

    hub.call(work)


@pytest.mark.parametrize("bystanders", [0, 1])
def test_admins_who_demote_each_other_leave_one_admin(hubs: Hubs, bystanders: int) -> None:
    """With a third admin too: an admin who is demoted while waiting can no longer demote."""
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    acme = create_organization(one, "acme", ada, bob="admin")
    if bystanders:
        restore(one, acme, create_user(one, "carol"))
    with api(one, create_token(one, ada)) as first, api(two, create_token(two, bob)) as second:
        for _ in range(ROUNDS):
            statuses = run_concurrently([lambda: demote(first, "bob"), lambda: demote(second, "ada")])
            assert sorted(statuses) in ([200, 403], [200, 409])
            assert len({"ada", "bob"} & set(admins_of(one, acme))) == 1
            restore(one, acme, ada, bob)


def test_two_admins_who_leave_concurrently_leave_one_admin(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    acme = create_organization(one, "acme", ada, bob="admin")
    with api(one, create_token(one, ada)) as first, api(two, create_token(two, bob)) as second:
        for _ in range(ROUNDS):
            answers = run_concurrently(
                [lambda: first.delete(f"{MEMBERS}/ada"), lambda: second.delete(f"{MEMBERS}/bob")]
            )
            assert sorted(answer.status_code for answer in answers) == [200, 409]
            assert len(admins_of(one, acme)) == 1
            restore(one, acme, ada, bob)


def test_concurrent_leave_and_demotion_leave_one_admin(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    acme = create_organization(one, "acme", ada, bob="admin")
    with api(one, create_token(one, ada)) as first, api(two, create_token(two, ada)) as second:
        for _ in range(ROUNDS):
            leaving, _ = run_concurrently(
                [lambda: first.delete(f"{MEMBERS}/ada").status_code, lambda: demote(second, "bob")]
            )
            assert len(admins_of(one, acme)) == 1
            assert (leaving == 200) == (role_in(one, acme, ada) is None)
            restore(one, acme, ada, bob)


def test_concurrent_user_deletion_and_leave_keep_one_admin(hubs: Hubs) -> None:
    one, two = hubs
    ada = create_user(one, "ada")
    token = create_token(one, ada)

    def delete(user: User) -> int:
        async def work(opened: Hub) -> int:
            try:
                await own_account.delete(opened.accounts, user, SYSTEM)
            except Conflict as error:
                return error.status
            return 200

        return two.call(work)

    with api(one, token) as client:

        def leave(name: str) -> int:
            return client.delete(f"/api/organizations/{name}/members/ada").status_code

        for number in range(ROUNDS):
            name, bob = f"org{number}", create_user(one, f"bob{number}")
            acme = create_organization(one, name, ada, **{bob.name: "admin"})
            statuses = run_concurrently([partial(leave, name), partial(delete, bob)])
            assert sorted(statuses) == [200, 409]
            assert len(admins_of(one, acme)) == 1


def test_invitation_is_either_accepted_or_withdrawn(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    acme = create_organization(one, "acme", ada)
    page = "/organizations/acme/settings/members"
    with browser_of(one, ada) as admin, browser_of(two, bob) as invited:
        for _ in range(ROUNDS):
            invitation_id = invite(one, acme, "bob")
            withdraw = fill_form(admin, page, f"/organizations/acme/settings/invitations/{invitation_id}/withdraw")
            action = f"/settings/organizations/invitations/{invitation_id}/accept"
            accept = fill_form(invited, "/settings/organizations", action)
            accepted, withdrawn = (answer.status_code for answer in run_concurrently([accept, withdraw]))
            assert sorted((accepted, withdrawn)) == [303, 404]
            assert (accepted == 303) == (role_in(one, acme, bob) == "write")
            if accepted == 303:
                one.call(lambda opened: members.remove(opened.accounts, acme, bob, SYSTEM))
    kinds = [entry["type"] for entry in entries_of(one, acme)]
    assert kinds.count("org.add_user") + kinds.count("org.revoke_invitation") == ROUNDS
    assert kinds.count("org.add_user") == kinds.count("org.remove_user")


def invite(hub: RunningHub, acme: Organization, invitee: str) -> str:
    """The invitation's id. One is sent per hour, so that the mail limit does not matter."""
    hub.clock.advance(3600)

    async def work(opened: Hub) -> str:
        await invitations.invite(opened.accounts, acme, invitee, Role.WRITE, SYSTEM)
        row = await opened.db.one("SELECT id FROM invitations WHERE org_id = :id", {"id": acme.id})
        assert row is not None
        return str(row["id"])

    return hub.call(work)


def test_concurrent_acceptances_add_one_member(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    acme = create_organization(one, "acme", ada)
    with browser_of(one, bob) as first, browser_of(two, bob) as second:
        for _ in range(ROUNDS):
            invitation_id = invite(one, acme, "bob")
            action = f"/settings/organizations/invitations/{invitation_id}/accept"
            forms = [fill_form(tab, "/settings/organizations", action) for tab in (first, second)]
            assert sorted(answer.status_code for answer in run_concurrently(forms)) == [303, 404]
            assert role_in(one, acme, bob) == "write"
            one.call(lambda opened: members.remove(opened.accounts, acme, bob, SYSTEM))
    assert [entry["type"] for entry in entries_of(one, acme)].count("org.add_user") == ROUNDS


def test_mailed_link_admits_one_person(hubs: Hubs) -> None:
    one, two = hubs
    acme = create_organization(one, "acme", create_user(one, "ada"))
    people = [create_user(one, f"user{number}") for number in range(6)]
    one.call(lambda opened: invitations.invite(opened.accounts, acme, "any@example.com", Role.WRITE, SYSTEM))
    link = link_in(mails_to(one, "any@example.com")[0])
    with ExitStack() as stack:
        hosts = [one, two] * 3
        browsers = [stack.enter_context(browser_of(hub, user)) for hub, user in zip(hosts, people, strict=True)]
        answers = run_concurrently([fill_form(browser, link, decision="accept") for browser in browsers])
    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 5
    assert [role_in(one, acme, user) for user in people].count("write") == 1


def test_acceptance_during_the_deletion_of_the_organization_leaves_no_member(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")
    with browser_of(two, bob) as invited:
        for number in range(5):
            acme = create_organization(one, f"org{number}", ada)
            invitation_id = invite(one, acme, "bob")
            action = f"/settings/organizations/invitations/{invitation_id}/accept"
            accept = fill_form(invited, "/settings/organizations", action)

            def delete(acme: Organization = acme) -> httpx.Response:
                with browser_of(one, ada) as admin:
                    return submit(admin, f"/organizations/{acme.name}/settings/delete", name=acme.name)

            accepted, deleted = run_concurrently([accept, delete])
            assert (accepted.status_code in (303, 404), deleted.status_code) == (True, 303)
            assert role_in(one, acme, bob) is None


def test_concurrent_renames_leave_one_name(hubs: Hubs) -> None:
    one, two = hubs
    ada = create_user(one, "ada")
    acme = create_organization(one, "acme", ada)
    with api(one, create_token(one, ada)) as script:
        # Names that had repos stay reserved.
        create_repo(script, "acme/tiny")

    def rename(hub: RunningHub, name: str) -> None:
        hub.call(lambda opened: settings.rename(opened.accounts, acme, name, SYSTEM))

    for number in range(ROUNDS):
        names = f"left{number}", f"right{number}"
        run_concurrently([partial(rename, one, names[0]), partial(rename, two, names[1])])
        with one.client() as client:
            answers = {name: client.get(f"/{name}") for name in names}
        (present,) = [name for name, answer in answers.items() if answer.status_code == 200]
        (former,) = [name for name in names if name != present]
        assert answers[former].headers["location"] == f"/{present}"

    async def current(opened: Hub) -> int:
        row = await opened.db.one("SELECT count(*) AS n FROM names WHERE kind = 'org' AND current = 1")
        return int(row["n"]) if row else 0

    assert one.call(current) == 1


def test_concurrent_creations_of_one_name_create_one_organization(hubs: Hubs) -> None:
    one, two = hubs
    ada, bob = create_user(one, "ada"), create_user(one, "bob")

    def found(hub: RunningHub, user: User, name: str) -> bool:
        async def work(opened: Hub) -> bool:
            try:
                await settings.create(opened.accounts, user, name, "", SYSTEM)
            except HubError:
                return False
            return True

        return hub.call(work)

    for number in range(ROUNDS):
        name = f"Acme{number}"
        won = run_concurrently([partial(found, one, ada, name), partial(found, two, bob, name.lower())])
        assert sorted(won) == [False, True]
