"""`/api/organizations/{name}/members`: what members see, what admins change."""

from typing import Any

import httpx
import pytest
from tests.bed.organizations import role_in
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM

MEMBERS = "/api/organizations/acme/members"


def put(client: httpx.Client, user: str, role: Any, **more: Any) -> httpx.Response:
    return client.put(f"{MEMBERS}/{user}/role", json={"role": role, **more})


@pytest.mark.one_engine
def test_admins_see_roles_and_addresses(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "Bob", verified=False)
    create_organization(hub, "acme", ada, Bob="contributor")
    with api(hub, create_token(hub, ada, "read")) as client:
        assert client.get(MEMBERS).json() == [
            {
                "_id": ada.id,
                "user": "ada",
                "fullname": "ada",
                "avatarUrl": f"/avatars/{ada.id}.svg",
                "type": "user",
                "isPro": False,
                "role": "admin",
                "verifiedEmail": "ada@example.org",
            },
            {
                "_id": bob.id,
                "user": "Bob",
                "fullname": "Bob",
                "avatarUrl": f"/avatars/{bob.id}.svg",
                "type": "user",
                "isPro": False,
                "role": "contributor",
            },
        ]


@pytest.mark.one_engine
def test_other_members_see_names(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    with api(hub, create_token(hub, bob)) as client:
        said = client.get(MEMBERS).json()
        assert [set(member) for member in said] == [{"_id", "user", "fullname", "avatarUrl", "type", "isPro"}] * 2
        refused = client.get(MEMBERS, params={"email": "ada@example.org"})
        assert refused.status_code == 403
        assert "You need the admin role" in refused.headers["x-error-message"]


@pytest.mark.one_engine
def test_non_member_sees_nothing(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "ada"))
    with (
        api(hub, create_token(hub, create_user(hub, "eve"))) as stranger,
        api(hub, create_token(hub, create_user(hub, "olga", operator=True))) as operator,
        api(hub) as visitor,
        api(hub, "hf_wrong") as forger,
        browser_of(hub, create_user(hub, "bob")) as browser,
    ):
        assert [client.get(MEMBERS).status_code for client in (stranger, operator)] == [403, 403]
        assert [client.get(MEMBERS).status_code for client in (visitor, forger, browser)] == [401, 401, 401]


def test_members_are_searched_by_name_and_address(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    create_user(hub, "bobby", verified=False)
    create_organization(hub, "acme", ada, bob="read", bobby="read")

    def names(client: httpx.Client, **query: str) -> list[str]:
        return [member["user"] for member in client.get(MEMBERS, params=query).json()]

    with api(hub, create_token(hub, ada)) as client:
        assert names(client, search="BOB") == ["bob", "bobby"]
        assert names(client, search="%") == []
        assert names(client, email="Bob@example.org") == ["bob"]
        assert names(client, email="bobby@example.org") == [], "not verified, so not theirs"
        assert names(client, email="example.org") == []
        assert names(client, search="ada", email="bob@example.org") == []


def test_pages_follow_one_another(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    others = ["Bob", "carol", "Dave", "eve"]
    for name in others:
        create_user(hub, name)
    create_organization(hub, "acme", ada, **dict.fromkeys(others, "read"))
    with api(hub, create_token(hub, ada)) as client:
        found, address = [], f"{MEMBERS}?limit=2"
        while address:
            answer = client.get(address)
            found.append([member["user"] for member in answer.json()])
            address = answer.links.get("next", {}).get("url", "")
            assert not address or address.startswith(f"{hub.url}{MEMBERS}?limit=2&cursor=")
        assert found == [["ada", "Bob"], ["carol", "Dave"], ["eve"]]
        for bad in ("limit=0", "limit=x", "cursor=x", "limit=1&limit=2"):
            assert client.get(f"{MEMBERS}?{bad}").status_code == 400


@pytest.mark.one_engine
def test_members_of_a_renamed_organization_are_found_by_both_names(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    hub.clock.advance(24 * 3600)
    hub.call(lambda opened: settings.rename(opened.accounts, acme, "acme2", SYSTEM))
    with api(hub, create_token(hub, ada)) as client:
        answer = client.get(f"{MEMBERS}?limit=1")
        assert (answer.status_code, answer.headers["location"]) == (307, "/api/organizations/acme2/members?limit=1")
        assert put(client, "bob", "write").status_code == 200, "a name stays with its organization"
        assert role_in(hub, acme, bob) == "write"


@pytest.mark.one_engine
def test_role_is_set(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as client:
        for role in ("contributor", "write", "admin", "admin", "read"):
            answer = put(client, "BOB", role, resourceGroups=[])
            assert (answer.status_code, answer.json()) == (200, {"success": True})
            assert role_in(hub, acme, bob) == role


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"role": "owner"}, 422),
        ({"role": "Admin"}, 422),
        ({"role": 4}, 422),
        ({}, 422),
        ([], 422),
        ({"role": "write", "resourceGroups": [{"id": "x", "role": "read"}]}, 422),
        ({"role": "write", "user": "eve"}, 422),
    ],
)
def test_invalid_body_is_rejected(hub: RunningHub, body: Any, status: int) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as client:
        answer = client.put(f"{MEMBERS}/bob/role", json=body)
        assert (answer.status_code, list(answer.json())) == (status, ["error"])
        broken = client.put(f"{MEMBERS}/bob/role", content=b"{", headers={"content-type": "application/json"})
        assert broken.status_code == 400
        assert role_in(hub, acme, bob) == "read"


@pytest.mark.one_engine
def test_only_admins_with_a_write_token_change_members(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with (
        api(hub, create_token(hub, bob)) as writer,
        api(hub, create_token(hub, ada, "read")) as reader,
        api(hub, create_token(hub, create_user(hub, "eve"))) as stranger,
        api(hub) as visitor,
    ):
        assert [put(client, "ada", "read").status_code for client in (writer, stranger, visitor)] == [403, 403, 401]
        assert put(writer, "bob", "admin").status_code == 403
        assert put(reader, "bob", "read").status_code == 403
        assert reader.delete(f"{MEMBERS}/bob").status_code == 403
        assert [client.delete(f"{MEMBERS}/ada").status_code for client in (writer, stranger)] == [403, 403]
        assert (role_in(hub, acme, ada), role_in(hub, acme, bob)) == ("admin", "write")


@pytest.mark.one_engine
def test_last_admin_cannot_be_removed_or_demoted(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        for answer in (put(client, "ada", "write"), client.delete(f"{MEMBERS}/ada")):
            assert answer.status_code == 409
            assert answer.json() == {"error": "An organization needs an admin. Make someone else an admin first."}
        assert put(client, "ada", "admin").status_code == 200
        assert role_in(hub, acme, ada) == "admin"


@pytest.mark.one_engine
def test_member_is_removed(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="admin")
    with api(hub, create_token(hub, ada)) as client:
        answer = client.delete(f"{MEMBERS}/bob")
        assert (answer.status_code, answer.json()) == (200, {"success": True})
        assert role_in(hub, acme, bob) is None
        assert client.delete(f"{MEMBERS}/bob").status_code == 404
        for nobody in ("nobody", "acme", "%00", "a%2Fb"):
            assert client.delete(f"{MEMBERS}/{nobody}").status_code in (400, 404)
            assert put(client, nobody, "read").status_code in (400, 404)


@pytest.mark.one_engine
def test_member_may_leave(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, bob, "read")) as reader, api(hub, create_token(hub, bob)) as client:
        assert reader.delete(f"{MEMBERS}/bob").status_code == 403, "leaving is a change"
        assert client.delete(f"{MEMBERS}/bob").status_code == 200
        assert role_in(hub, acme, bob) is None
        assert client.delete(f"{MEMBERS}/bob").status_code == 404
