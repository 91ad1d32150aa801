"""`/invitations/{secret}`: accept or decline when signed in; otherwise sign in or join, and return."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
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
    post,
    submit,
)
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import store
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

GONE = "This invitation was already used or withdrawn, or has expired."


@pytest.fixture
def invite_only(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, signup="invite")) as hub:
        yield hub


@pytest.fixture
def closed(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, signup="closed")) as hub:
        yield hub


def invite(hub: RunningHub, organization: Organization, admin: User, invitee: str, role: str = "write") -> str:
    actor = Actor(admin.name, admin.id, VISITOR.ip)

    async def work(opened: Hub) -> None:
        await invitations.invite(opened.accounts, organization, invitee, Role.parse(role), actor)

    hub.call(work)
    address = invitee if "@" in invitee else f"{invitee}@example.org"
    return link_in(mails_to(hub, address)[-1])


def invite_to_hub(hub: RunningHub, email: str) -> str:
    async def work(opened: Hub) -> str:
        return await invitations.invite_to_hub(opened.accounts, email)

    return hub.call(work).removeprefix(hub.url)


def founded(hub: RunningHub) -> tuple[Organization, User]:
    boss = create_user(hub, "boss")
    return create_organization(hub, "acme", boss), boss


def role_of(hub: RunningHub, organization: Organization, name: str) -> str | None:
    async def work(opened: Hub) -> str | None:
        user = await store.user_by_name(opened.db, name)
        role = await org_store.role_of(opened.db, organization.id, user.id) if user else None
        return role.label if role else None

    return hub.call(work)


def join_by(client: httpx.Client, link: str, name: str, email: str) -> httpx.Response:
    return submit(client, link, "/join", username=name, email=email, password=PASSWORD)


def race_to_join(hub: RunningHub, link: str) -> list[int]:
    """Everyone loads the form; then all submit it."""
    with ExitStack() as stack:
        clients = [stack.enter_context(hub.client()) for _ in range(5)]
        forms = [
            fill_form(client, link, "/join", username=f"n{i}", email=f"n{i}@example.org", password=PASSWORD)
            for i, client in enumerate(clients)
        ]
        return [answer.status_code for answer in run_concurrently(forms)]


def test_invitation_can_be_accepted(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, create_user(hub, "ada").name, "contributor")
    with hub.client() as client:
        assert submit(client, "/login", username="ada", password=PASSWORD).status_code == 303
        home = client.get("/").text
        assert "Needs attention" in home
        shown = client.get(link).text
        assert "acme" in shown
        assert "contributor" in shown
        assert role_of(hub, acme, "ada") is None
        response = submit(client, link, decision="accept")
        assert response.status_code == 303
        assert role_of(hub, acme, "ada") == "contributor"
        home = client.get("/").text
        assert "You are now a member of acme." in home
        assert "Needs attention" not in home
        assert client.get(link).status_code == 404


def test_invitation_can_be_declined(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    ada = create_user(hub, "ada")
    link = invite(hub, acme, boss, "ada")
    with browser_of(hub, ada) as client:
        assert submit(client, link, decision="perhaps").status_code == 422
        assert submit(client, link, decision="decline").status_code == 303
        assert client.get(link).status_code == 404
    assert role_of(hub, acme, "ada") is None


def test_invitation_for_a_user_works_for_that_user_only(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    create_user(hub, "ada")
    link = invite(hub, acme, boss, "ada", "admin")
    with browser_of(hub, create_user(hub, "eve")) as client:
        assert client.get(link).status_code == 403
        for decision in ("accept", "decline"):
            assert post(client, link, decision=decision).status_code == 403
    with hub.client() as client:
        assert 'action="/join"' not in client.get(link).text
    assert role_of(hub, acme, "eve") is None


def test_visitor_signs_in_and_returns_to_the_invitation(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    create_user(hub, "ada")
    link = invite(hub, acme, boss, "ada")
    with hub.client() as client:
        shown = client.get(link)
        assert "acme invites you to join with the role write." in shown.text
        door = shown.text.partition('href="/login?')[2].partition('"')[0]
        response = submit(client, f"/login?{door}", username="ada", password=PASSWORD)
        assert response.headers["location"] == link
        assert submit(client, link, decision="accept").status_code == 303
    assert role_of(hub, acme, "ada") == "write"


def test_answering_signed_out_leads_to_sign_in(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, "new@example.org")
    with hub.client() as client:
        hidden = Page(client.get(link)).hidden()
        assert client.post(link, data={**hidden, "decision": "accept"}).status_code == 401
        assert client.get(link).status_code == 200


def test_joining_with_the_invited_address_needs_no_confirmation(invite_only: RunningHub) -> None:
    """The link proves the address; no mail is sent."""
    hub = invite_only
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, "new@example.org", "read")
    with hub.client() as client:
        shown = client.get(link).text
        assert 'value="new@example.org"' in shown
        response = join_by(client, link, "newcomer", "new@example.org")
        assert (response.status_code, response.headers["location"]) == (303, link)
        assert submit(client, link, decision="accept").status_code == 303
        assert "Needs attention" not in client.get("/").text
    assert role_of(hub, acme, "newcomer") == "read"


def test_joining_with_another_address_needs_confirmation(invite_only: RunningHub) -> None:
    hub = invite_only
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, "new@example.org")
    with hub.client() as client:
        response = join_by(client, link, "newcomer", "other@example.org")
        assert response.status_code == 200
        assert "Check your email." in response.text
        assert link_in(mails_to(hub, "other@example.org")[0]).startswith("/verify/")
        door = response.text.partition('href="/login?')[2].partition('"')[0]
        back = submit(client, f"/login?{door}", username="newcomer", password=PASSWORD)
        assert back.headers["location"] == link
        assert submit(client, link, decision="accept").status_code == 303
    assert role_of(hub, acme, "newcomer") == "write"


def test_invitation_admits_one_person(invite_only: RunningHub) -> None:
    """Otherwise, passed on, it would open a closed hub."""
    hub = invite_only
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, "new@example.org")
    assert sorted(race_to_join(hub, link)) == [200] + [404] * 4
    with hub.client() as client:
        assert 'action="/join"' not in client.get(link).text


def test_invitation_to_the_hub_lets_a_visitor_join(invite_only: RunningHub) -> None:
    link = invite_to_hub(invite_only, "new@example.org")
    with invite_only.client() as client:
        response = join_by(client, link, "newcomer", "new@example.org")
        assert (response.status_code, response.headers["location"]) == (303, "/")
        home = client.get("/").text
        assert "Welcome, newcomer." in home
        assert "Needs attention" not in home
    with invite_only.client() as client:
        gone = client.get(link)
        assert gone.status_code == 404
        assert GONE in gone.text


def test_concurrent_uses_of_an_invitation_to_the_hub_admit_one(invite_only: RunningHub) -> None:
    link = invite_to_hub(invite_only, "new@example.org")
    assert sorted(race_to_join(invite_only, link)) == [200] + [404] * 4


def test_invalid_form_does_not_use_up_the_invitation(invite_only: RunningHub) -> None:
    create_user(invite_only, "ada")
    link = invite_to_hub(invite_only, "new@example.org")
    with invite_only.client() as client:
        response = join_by(client, link, "ada", "new@example.org")
        assert response.status_code == 422
        again = {**Page(response).hidden(), "username": "newcomer", "email": "new@example.org", "password": PASSWORD}
        assert client.post("/join", data=again).status_code == 303


def test_known_address_is_not_revealed(invite_only: RunningHub) -> None:
    create_user(invite_only, "ada")
    link = invite_to_hub(invite_only, "new@example.org")
    with invite_only.client() as client:
        assert "Check your email." in join_by(client, link, "newcomer", "ada@example.org").text
        assert client.get(link).status_code == 200, "nobody joined, so it is still good"


def test_signed_in_user_needs_no_invitation_to_the_hub(hub: RunningHub) -> None:
    link = invite_to_hub(hub, "new@example.org")
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert client.get(link).headers["location"] == "/"
        assert post(client, link, decision="accept").status_code == 404


def test_closed_hub_lets_nobody_join(closed: RunningHub) -> None:
    acme, boss = founded(closed)
    link = invite(closed, acme, boss, "new@example.org")
    with closed.client() as client:
        shown = client.get(link)
        assert 'action="/join"' not in shown.text
        assert 'href="/login?' in shown.text
        form = {
            "csrf": Page(client.get("/login")).hidden()["csrf"],
            "invitation": link.rpartition("/")[2],
            "username": "newcomer",
            "email": "new@example.org",
            "password": PASSWORD,
        }
        assert client.post("/join", data=form).status_code == 403
    with browser_of(closed, create_user(closed, "ada")) as client:
        assert submit(client, link, decision="accept").status_code == 303
    assert role_of(closed, acme, "ada") == "write"


def test_concurrent_acceptances_add_one_member(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    link = invite(hub, acme, boss, "team@example.org")
    users = [create_user(hub, f"user{number}") for number in range(5)]
    with ExitStack() as stack:
        forms = [fill_form(stack.enter_context(browser_of(hub, user)), link, decision="accept") for user in users]
        answers = run_concurrently(forms)
    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 4
    members = [role_of(hub, acme, user.name) == "write" for user in users]
    assert members == [answer.status_code == 303 for answer in answers]


def test_invitation_expires_after_seven_days(hub: RunningHub) -> None:
    acme, boss = founded(hub)
    ada = create_user(hub, "ada")
    link = invite(hub, acme, boss, "ada")
    with browser_of(hub, ada) as client:
        hidden = Page(client.get(link)).hidden()
        hub.clock.advance(7 * 24 * 3600)
        assert client.get(link).status_code == 404
        assert client.post(link, data={**hidden, "decision": "accept"}).status_code == 404
    assert role_of(hub, acme, "ada") is None
