"""Each change of members or settings creates exactly one audit entry, with the actor, the address and the
credential.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest
from tests.bed.organizations import entries_of
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

from hubgate.server.accounts import store

SETTINGS = "/organizations/acme/settings"
MEMBERS = "/api/organizations/acme/members"


@dataclass
class Change:
    """A change by ada, the admin, in a browser or with a token, and its audit entry."""

    do: Callable[[httpx.Client], httpx.Response]
    kind: str
    message: str
    data: dict[str, str]


def form(page: str, action: str = "", **fields: str) -> Callable[[httpx.Client], httpx.Response]:
    return lambda client: submit(client, SETTINGS + page, SETTINGS + (action or page), **fields)


IN_BROWSER = {
    "profile": Change(
        form("/profile", fullname="Acme", website=""),
        "org.update_settings",
        "changed the profile",
        {"fullname": "Acme", "website": ""},
    ),
    "rename": Change(
        form("/profile", "/rename", name="acme2"),
        "org.rename",
        "renamed acme to acme2",
        {"from": "acme", "to": "acme2"},
    ),
    "billing": Change(form("/profile", "/billing", can_pay="on"), "org.set_billing", "turned billing on", {}),
    "invite": Change(
        form("/members", invitee="carol@example.com", role="write"),
        "org.invite_user",
        "invited carol@example.com as write",
        {"invitee": "carol@example.com", "role": "write"},
    ),
    "role": Change(
        form("/members", "/members/bob/role", role="write"),
        "org.change_role",
        "changed the role of bob from read to write",
        {"user": "bob", "from": "read", "to": "write"},
    ),
    "remove": Change(form("/members/bob/remove"), "org.remove_user", "removed bob", {"user": "bob", "role": "read"}),
    "delete": Change(form("/delete", name="acme"), "org.delete", "deleted acme", {}),
}

WITH_TOKEN = {
    "role": Change(
        lambda client: client.put(f"{MEMBERS}/bob/role", json={"role": "admin"}),
        "org.change_role",
        "changed the role of bob from read to admin",
        {"user": "bob", "from": "read", "to": "admin"},
    ),
    "remove": Change(
        lambda client: client.delete(f"{MEMBERS}/bob"),
        "org.remove_user",
        "removed bob",
        {"user": "bob", "role": "read"},
    ),
}


@pytest.mark.one_engine
@pytest.mark.parametrize("name", IN_BROWSER)
def test_change_in_the_browser_is_logged(hub: RunningHub, name: str) -> None:
    change, ada = IN_BROWSER[name], create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    before = entries_of(hub, acme)
    with browser_of(hub, ada) as client:
        assert change.do(client).status_code == 303
    (entry,) = [entry for entry in entries_of(hub, acme) if entry not in before]
    assert (entry["type"], entry["message"]) == (change.kind, change.message)
    assert (entry["author_id"], entry["author_name"]) == (ada.id, "ada")
    assert (entry["ip"], entry["token"]) == ("127.0.0.1", None)
    assert change.data.items() <= entry["data"].items()


@pytest.mark.one_engine
@pytest.mark.parametrize("name", WITH_TOKEN)
def test_change_with_a_token_is_logged_with_the_token(hub: RunningHub, name: str) -> None:
    change, ada = WITH_TOKEN[name], create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    before = entries_of(hub, acme)
    token = create_token(hub, ada, name="laptop")
    with api(hub, token) as client:
        assert change.do(client).status_code == 200
    (entry,) = [entry for entry in entries_of(hub, acme) if entry not in before]
    assert (entry["type"], entry["message"], entry["author_id"]) == (change.kind, change.message, ada.id)
    assert entry["ip"] == "127.0.0.1"
    assert change.data.items() <= entry["data"].items()
    assert json.loads(entry["token"])["role"] == "write"
    assert token not in entry["token"]


def test_creating_joining_withdrawing_and_leaving_are_logged(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with browser_of(hub, ada) as admin, browser_of(hub, bob) as member:
        submit(admin, "/organizations/new", name="acme", fullname="")
        members = f"{SETTINGS}/members"
        submit(admin, members, invitee="bob", role="write")
        submit(admin, members, invitee="carol@example.com", role="read")
        submit(member, link_in(mails_to(hub, "bob@example.org")[0]), decision="accept")
        (address,) = re.findall(rf"{SETTINGS}/invitations/\w+/withdraw", admin.get(members).text)
        submit(admin, members, address)
        submit(member, "/settings/organizations/acme/leave")
    acme = hub.call(lambda opened: store.organization_by_name(opened.db, "acme"))
    assert acme is not None
    found = [(entry["type"], entry["author_name"], entry["message"]) for entry in entries_of(hub, acme)]
    assert sorted(found) == sorted(
        [
            ("org.create", "ada", "created acme"),
            ("org.invite_user", "ada", "invited bob as write"),
            ("org.invite_user", "ada", "invited carol@example.com as read"),
            ("org.add_user", "bob", "joined as write"),
            ("org.revoke_invitation", "ada", "withdrew the invitation for carol@example.com"),
            ("org.remove_user", "bob", "left acme"),
        ]
    )


@pytest.mark.one_engine
def test_request_that_changes_nothing_is_not_logged(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    before = entries_of(hub, acme)
    with browser_of(hub, ada) as client, browser_of(hub, create_user(hub, "eve")) as stranger:
        for same in (
            form("/profile", fullname="", website=""),
            form("/profile", "/rename", name="acme"),
            form("/profile", "/billing"),
            form("/members", "/members/bob/role", role="read"),
        ):
            assert same(client).status_code == 303
        for refused in (
            form("/profile", fullname="x" * 200, website=""),
            form("/profile", "/rename", name="ada"),
            form("/members", invitee="nobody", role="read"),
            form("/members", "/members/ada/role", role="read"),
            form("/members/ada/remove"),
            form("/delete", name="other"),
        ):
            assert refused(client).status_code in (409, 422)
        for action in ("/profile", "/rename", "/billing", "/members", "/members/bob/remove", "/delete"):
            assert post(stranger, SETTINGS + action, name="acme").status_code == 403
    assert entries_of(hub, acme) == before
