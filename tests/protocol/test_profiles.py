"""Public profiles and overviews: memberships and current names."""

import re
from html import unescape

import httpx
import pytest
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions, own_account, store
from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

DAY = 24 * 3600


def get(hub: RunningHub, path: str) -> httpx.Response:
    return httpx.get(hub.url + path)


def test_user_profile_shows_organizations(hub: RunningHub) -> None:
    ada = create_user(hub, "Ada")
    for name in ("zeta", "Acme"):
        create_organization(hub, name, ada)
    hub.call(lambda opened: own_account.set_profile(opened.accounts, ada, "Ada Lovelace", "https://ada.example"))
    page = get(hub, "/Ada")
    assert page.status_code == 200
    assert "<h1><bdi>Ada Lovelace</bdi></h1>" in page.text
    assert '<a href="https://ada.example" rel="nofollow noopener ugc">' in page.text
    assert f'<img class="avatar" src="/avatars/{ada.id}.svg"' in page.text
    assert re.findall(r'<a href="/(\w+)"><bdi>', page.text) == ["Acme", "zeta"]
    assert "No repos yet." in page.text
    assert "ada@example.org" not in page.text


def test_organization_profile_shows_the_number_of_members(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    roster, edit = '"/organizations/acme/members"', '"/organizations/acme/settings/profile"'
    page = get(hub, "/acme").text
    assert f'<img class="avatar avatar-org" src="/avatars/{acme.id}.svg"' in page
    assert "<p>2 members</p>" in page
    assert roster not in page
    with browser_of(hub, bob) as member, browser_of(hub, ada) as admin:
        assert (roster in member.get("/acme").text, edit in member.get("/acme").text) == (True, False)
        assert (roster in admin.get("/acme").text, edit in admin.get("/acme").text) == (True, True)


@pytest.mark.parametrize("name", ["nobody", "a b", "..%2f", "%3Cscript%3E", "x" * 300, "%F0%9F%92%A9"])
def test_unknown_name_is_404(hub: RunningHub, name: str) -> None:
    page = get(hub, f"/{name}")
    assert page.status_code == 404
    assert "Nothing here, or you don't have access. Another account may see more." in unescape(page.text)
    for path in (f"/api/users/{name}/overview", f"/api/organizations/{name}/overview"):
        answer = get(hub, path)
        assert (answer.status_code, list(answer.json())) == (404, ["error"])


@pytest.mark.parametrize("path", ["/{}", "/api/users/{}/overview"])
def test_disabled_or_deleted_user_is_404(hub: RunningHub, path: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")

    async def work(opened: Hub) -> None:
        await operator_actions.disable(opened.accounts, ada)
        await own_account.delete(opened.accounts, bob, SYSTEM)

    assert get(hub, path.format("ada")).status_code == 200
    hub.call(work)
    for name in ("ada", "bob"):
        assert get(hub, path.format(name)).status_code == 404
    hub.call(lambda opened: operator_actions.enable(opened.accounts, ada))
    assert get(hub, path.format("ada")).status_code == 200


def rename(hub: RunningHub, old: str, new: str) -> None:
    """A day after the last rename, so that the old name stays reserved."""

    async def work(opened: Hub) -> None:
        found = await store.account_named(opened.db, old)
        if found is not None and hasattr(found, "plan"):
            await settings.rename(opened.accounts, found, new, SYSTEM)
        elif found is not None:
            await own_account.rename(opened.accounts, found, new)

    hub.clock.advance(DAY)
    hub.call(work)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("user", "/{}"),
        ("user", "/api/users/{}/overview"),
        ("organization", "/{}"),
        ("organization", "/api/organizations/{}/overview"),
    ],
)
def test_former_name_redirects_to_the_current_one(hub: RunningHub, kind: str, path: str) -> None:
    founder = create_user(hub, "first")
    if kind == "organization":
        rename(hub, "first", "founder")
        create_organization(hub, "acme", founder)
        rename(hub, "acme", "Second")
        old = "acme"
    else:
        rename(hub, "first", "Second")
        old = "first"
    for given in (old, old.upper()):
        answer = get(hub, path.format(given) + "?a=b%20c")
        assert (answer.status_code, answer.headers["location"]) == (307, path.format("Second") + "?a=b%20c")
    rename(hub, "Second", "third")
    assert get(hub, path.format(old)).headers["location"] == path.format("third"), "in one step"
    with hub.client(follow_redirects=True) as client:
        assert client.get(path.format("second")).status_code == 200


def test_names_ignore_case(hub: RunningHub) -> None:
    create_user(hub, "Ada")
    page = get(hub, "/aDA")
    assert (page.status_code, page.headers["location"]) == (307, "/Ada")
    assert httpx.head(hub.url + "/aDA").status_code == 307
    assert get(hub, "/api/users/aDA/overview").json()["user"] == "Ada"


def test_former_name_of_a_deleted_owner_is_404(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    rename(hub, "acme", "acme2")
    hub.call(lambda opened: settings.delete(opened.accounts, acme, SYSTEM))
    for name in ("acme", "acme2"):
        assert get(hub, f"/{name}").status_code == 404
        assert get(hub, f"/api/organizations/{name}/overview").status_code == 404


def test_name_cannot_reverse_the_text_of_a_profile(hub: RunningHub) -> None:
    """A name as in attack O33."""
    ada = create_user(hub, "ada")
    evil = "\u202etpircs\u202c<img src=x onerror=alert(1)>\u200b" + "long " * 12
    hub.call(lambda opened: own_account.set_profile(opened.accounts, ada, evil, "https://\u0430pple.example/\u202ex"))
    page = get(hub, "/ada").text
    assert "<img src=x" not in page
    seen = re.sub("<[^>]*>", "", page.split("<main")[1])
    assert "tpircs&lt;img" in seen
    assert not {"\u202e", "\u202c", "\u200b"} & set(seen)
    assert "xn--pple-43d.example" in page


def test_overview_describes_a_user(hub: RunningHub) -> None:
    ada = create_user(hub, "Ada")
    acme = create_organization(hub, "acme", ada)
    said = get(hub, "/api/users/Ada/overview").json()
    assert said.pop("createdAt").endswith("Z")
    assert said == {
        "_id": ada.id,
        "user": "Ada",
        "fullname": "Ada",
        "avatarUrl": f"/avatars/{ada.id}.svg",
        "type": "user",
        "isPro": False,
        "numModels": 0,
        "numDatasets": 0,
        "numSpaces": 0,
        "numDiscussions": 0,
        "numFollowers": 0,
        "numFollowing": 0,
        "orgs": [
            {"id": acme.id, "name": "acme", "fullname": "acme", "avatarUrl": f"/avatars/{acme.id}.svg"},
        ],
    }


def test_overview_describes_an_organization(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, plan="team", bob="read")
    said = get(hub, "/api/organizations/acme/overview").json()
    assert said.pop("createdAt").endswith("Z")
    assert said == {
        "_id": acme.id,
        "name": "acme",
        "fullname": "acme",
        "avatarUrl": f"/avatars/{acme.id}.svg",
        "type": "org",
        "plan": "team",
        "numUsers": 2,
        "numModels": 0,
        "numDatasets": 0,
        "numSpaces": 0,
        "numFollowers": 0,
    }


def test_user_is_not_found_as_an_organization(hub: RunningHub) -> None:
    create_organization(hub, "acme", create_user(hub, "ada"))
    assert get(hub, "/api/organizations/ada/overview").status_code == 404
    assert get(hub, "/api/users/acme/overview").status_code == 404


def test_invalid_token_does_not_block_public_data(hub: RunningHub) -> None:
    create_user(hub, "ada")
    headers = {"authorization": "Bearer hf_wrong"}
    assert httpx.get(f"{hub.url}/api/users/ada/overview", headers=headers).status_code == 200
