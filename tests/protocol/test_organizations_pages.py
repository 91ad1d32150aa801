"""Creating, changing, renaming and deleting an organization in the browser."""

from html import unescape

import httpx
import pytest
from tests.bed.people import browser_of, create_organization, create_user, post, submit
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

DAY = 24 * 3600
NEW = "/organizations/new"
PROFILE = "/organizations/acme/settings/profile"
DELETE = "/organizations/acme/settings/delete"
SETTINGS = [PROFILE, DELETE, "/organizations/acme/settings", "/organizations/acme/settings/members"]

POSTS = [
    NEW,
    PROFILE,
    DELETE,
    "/organizations/acme/settings/rename",
    "/organizations/acme/settings/billing",
    "/organizations/acme/settings/members",
    "/organizations/acme/settings/members/bob/role",
    "/organizations/acme/settings/members/bob/remove",
    "/organizations/acme/settings/invitations/000000000000000000000000/withdraw",
]


def test_creator_becomes_admin(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = submit(client, NEW, name="Acme", fullname="Acme  Corporation")
        assert (response.status_code, response.headers["location"]) == (303, "/organizations/Acme/settings/members")
        page = client.get(response.headers["location"])
        assert "Created Acme." in page.text
        assert '<option value="admin" selected>' in page.text
        assert "Acme Corporation" in client.get("/Acme").text


@pytest.mark.parametrize("name", ["", "-x", "a b", "a--b", "x" * 43, "settings", "operator", "ADA", "<script>"])
def test_unavailable_name_is_rejected(hub: RunningHub, name: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = submit(client, NEW, name=name, fullname="Kept <b>")
        assert response.status_code == 422
        assert "<title>Error: New organization" in response.text
        assert 'href="#name"' in response.text
        assert "Kept &lt;b&gt;" in response.text
        assert "<script>" not in response.text


def test_visitor_signs_in_first(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "ada"))
    with hub.client() as visitor:
        for address in [NEW, *SETTINGS]:
            response = visitor.get(address)
            assert (response.status_code, response.headers["location"].partition("=")[0]) == (303, "/login?next")


def test_settings_are_for_admins(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    writer, stranger = create_user(hub, "bob"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, bob="write")
    for user in (writer, stranger):
        with browser_of(hub, user) as client:
            for address in SETTINGS:
                page = client.get(address)
                assert page.status_code == 403, address
                assert "You need the admin role" in page.text
            for address in POSTS[1:]:
                assert post(client, address, name="acme", role="admin").status_code == 403, address
    with browser_of(hub, ada) as client:
        assert '<option value="write" selected>' in client.get("/organizations/acme/settings/members").text


def test_operator_who_is_not_a_member_is_rejected(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "ada"))
    with browser_of(hub, create_user(hub, "olga", operator=True)) as client:
        assert client.get(PROFILE).status_code == 403
        assert post(client, DELETE, name="acme").status_code == 403


@pytest.mark.parametrize("address", POSTS)
def test_form_without_csrf_token_changes_nothing(hub: RunningHub, address: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    with browser_of(hub, ada) as client, browser_of(hub, bob) as other:
        foreign = other.get(NEW).text.split('name="csrf" value="')[1].split('"')[0]
        for more in ({}, {"csrf": foreign}):
            response = client.post(address, data={"name": "acme", "role": "read", "fullname": "x", **more})
            assert response.status_code == 403
            assert "has expired or was sent from another site" in response.text


def test_profile_is_changed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        response = submit(client, PROFILE, fullname="Acme", website="https://acme.example/about")
        assert (response.status_code, response.headers["location"]) == (303, PROFILE)
        assert "Saved." in client.get(PROFILE).text
        shown = client.get("/acme").text
        assert '<a href="https://acme.example/about" rel="nofollow noopener ugc">' in shown
        refused = submit(client, PROFILE, fullname="x" * 97, website="javascript:alert(1)")
        assert refused.status_code == 422
        assert 'href="#fullname"' in refused.text
        assert 'href="#website"' in refused.text


def test_plan_is_shown_and_billing_is_set_by_admins(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada, plan="enterprise")
    with browser_of(hub, ada) as client:
        assert "Enterprise. Only the operator can change the plan." in client.get(PROFILE).text
        assert submit(client, PROFILE, "/organizations/acme/settings/billing", can_pay="on").status_code == 303
        assert 'name="can_pay" value="on" checked' in client.get(PROFILE).text
        assert submit(client, PROFILE, "/organizations/acme/settings/billing").status_code == 303
        assert 'name="can_pay" value="on" checked' not in client.get(PROFILE).text


def rename(client: httpx.Client, old: str, new: str) -> httpx.Response:
    return submit(client, f"/organizations/{old}/settings/profile", f"/organizations/{old}/settings/rename", name=new)


def test_rename_retains_the_old_name(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    hub.clock.advance(DAY)
    with browser_of(hub, ada) as client:
        moved = rename(client, "acme", "Acme2")
        assert (moved.status_code, moved.headers["location"]) == (303, "/organizations/Acme2/settings/profile")
        for old, new in (("/acme", "/Acme2"), (f"{PROFILE}?x=1", "/organizations/Acme2/settings/profile?x=1")):
            response = client.get(old)
            assert (response.status_code, response.headers["location"]) == (307, new)
        assert submit(client, NEW, name="acme", fullname="").status_code == 422, "The old name stays reserved"
        hub.clock.advance(DAY)
        assert rename(client, "Acme2", "acme").status_code == 303, "its own former name it may have again"
        assert client.get("/Acme2").headers["location"] == "/acme"
        assert rename(client, "acme", "ACME").status_code == 303, "another spelling is a rename too"
        assert client.get("/ACME").status_code == 200


def test_rename_to_a_taken_name_is_rejected(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as client:
        for name in ("Ada", "organizations", ""):
            response = rename(client, "acme", name)
            assert response.status_code == 422
            assert 'href="#name"' in response.text


def test_form_opened_before_a_rename_still_works(hub: RunningHub) -> None:
    """The old name still refers to the organization."""
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    hub.clock.advance(DAY)
    with browser_of(hub, ada) as client:
        rename(client, "acme", "acme2")
        page = "/organizations/acme2/settings/profile"
        response = post(client, PROFILE, fullname="Late", website="")
        assert response.headers["location"] == page
        assert "Late" in client.get("/acme2").text


def test_deletion_requires_the_name(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    hub.clock.advance(DAY)
    with browser_of(hub, ada) as client:
        page = client.get(DELETE).text
        assert "1 membership and 0 open invitations." in page
        for typed in ("", "ACME", "acme2"):
            refused = submit(client, DELETE, name=typed)
            assert refused.status_code == 422
            assert "Type acme, exactly as shown here." in refused.text
        assert client.get("/acme").status_code == 200
        done = submit(client, DELETE, name="acme")
        assert (done.status_code, done.headers["location"]) == (303, "/settings/organizations")
        for address in ("/acme", PROFILE, DELETE):
            assert client.get(address).status_code == 404
        assert submit(client, NEW, name="acme", fullname="").status_code == 422, "the name stays reserved"


def test_unknown_organization_is_not_found(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        for address in ("/organizations/nobody/settings/profile", "/organizations/ada/settings/profile"):
            page = client.get(address)
            assert page.status_code == 404
            assert "Nothing here, or you don't have access. Another account may see more." in unescape(page.text)
