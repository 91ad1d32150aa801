"""O67: once the owner of an address proves it, no stranger shares the account's organizations or redirects its
names.
"""

import re
from typing import Any

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, link_in, mails_to, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store as accounts
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Unauthorized
from hubgate.server.hub.repos import store, transfer
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.resources import Hub

NEW = "another horse battery"


def reset(hub: RunningHub, user: User) -> str:
    """Reset by mail, as the owner of the address does; returns the mail sent afterwards, in one line."""
    with hub.client() as client:
        assert submit(client, "/reset", email=user.email).status_code == 200
        (link,) = [link_in(mail) for mail in mails_to(hub, user.email) if mail["Subject"] == "Reset your password"]
        assert submit(client, link, password=NEW).status_code == 303
    told = mails_to(hub, user.email)[-1]
    assert told["Subject"] == "Your password was changed"
    return " ".join(told.get_content().split())


def token_after(hub: RunningHub, user: User) -> str:
    """A token of the account after the reset."""
    found = hub.call(lambda opened: accounts.user(opened.db, user.id))
    assert found is not None
    return create_token(hub, found)


def move(client: httpx.Client, old: str, new: str) -> None:
    answer = client.post("/api/repos/move", json={"fromRepo": old, "toRepo": new})
    assert (answer.status_code, answer.json().get("redirect")) == (200, True), answer.text


def invitation_of(browser: httpx.Client) -> str:
    (found,) = re.findall(r"invitations/([0-9a-f]{24})/accept", browser.get("/settings/organizations").text)
    return str(found)


def members(client: httpx.Client, name: str) -> dict[str, str | None]:
    """With their roles, which admins see."""
    answer = client.get(f"/api/organizations/{name}/members")
    assert answer.status_code == 200, answer.text
    return {one["user"]: one.get("role") for one in answer.json()}


def log_of(client: httpx.Client, name: str, kind: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/organizations/{name}/audit-log/export", params={"q": f"type:{kind}"})
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()
    return entries


@pytest.mark.one_engine
def test_o67_reset_leaves_shared_organizations_and_removes_redirects_to_others(hub: RunningHub) -> None:
    vic, att = create_user(hub, "vic", verified=False), create_user(hub, "att")
    with browser_of(hub, vic) as creator, browser_of(hub, att) as accomplice:
        assert submit(creator, "/organizations/new", name="trap", fullname="").status_code == 303
        at = "/organizations/trap/settings/members"
        assert submit(creator, at, at, invitee="att", role="admin").status_code == 303
        accept = f"/settings/organizations/invitations/{invitation_of(accomplice)}/accept"
        assert submit(accomplice, "/settings/organizations", accept).status_code == 303
    with api(hub, create_token(hub, vic)) as script:
        for name in ("vic/model", "vic/older"):
            create_repo(script, name)
        move(script, "vic/model", "trap/model")
        move(script, "vic/older", "vic/newer")
    said = reset(hub, vic)
    with api(hub) as anyone, api(hub, create_token(hub, att)) as other:
        assert anyone.get("/api/models/vic/model").status_code in (401, 404)
        assert anyone.get("/api/models/vic/older").headers["location"] == "/api/models/vic/newer"
        assert members(other, "trap") == {"att": "admin"}
        left = log_of(other, "trap", "org.remove_user")
    assert [one["message"] for one in left] == ["left trap"]
    assert "1 membership, 1 redirect." in said
    assert "You left trap." in said
    with api(hub, token_after(hub, vic)) as owner:
        create_repo(owner, "vic/model")


@pytest.mark.one_engine
def test_o67_only_admin_stays_and_is_notified(hub: RunningHub) -> None:
    """The organization would otherwise have no admin."""
    vic, att = create_user(hub, "vic", verified=False), create_user(hub, "att")
    create_organization(hub, "crew", vic, att="write")
    create_organization(hub, "acme", create_user(hub, "ada"), vic="admin", att="read")
    said = reset(hub, vic)
    assert "You left acme." in said
    assert "You are still the only admin of crew. Check who the other members are." in said
    with api(hub, token_after(hub, vic)) as owner, api(hub, create_token(hub, att)) as other:
        assert members(owner, "crew") == {"vic": "admin", "att": "write"}
        assert set(members(other, "acme")) == {"ada", "att"}


@pytest.mark.one_engine
def test_o67_redirects_of_an_organization_without_other_members_are_removed(hub: RunningHub) -> None:
    vic, att = create_user(hub, "vic", verified=False), create_user(hub, "att")
    create_organization(hub, "alone", vic)
    create_organization(hub, "trap", att, vic="admin")
    with api(hub, create_token(hub, vic)) as script:
        create_repo(script, "alone/model")
        move(script, "alone/model", "trap/model")
    said = reset(hub, vic)
    assert "1 membership, 1 redirect." in said
    with api(hub) as anyone, api(hub, token_after(hub, vic)) as owner:
        assert anyone.get("/api/models/alone/model").status_code in (401, 404)
        assert members(owner, "alone") == {"vic": "admin"}
        (entry,) = log_of(owner, "alone", "repo.unlink_redirect")
    assert entry["message"] == "unlinked alone/model"


@pytest.mark.one_engine
def test_o67_verified_account_retains_memberships_and_redirects(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="admin")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "ada/model")
        move(owner, "ada/model", "acme/model")
        said = reset(hub, ada)
        assert members(owner, "acme") == {"ada": "admin", "bob": "admin"}
        assert owner.get("/api/models/ada/model").headers["location"] == "/api/models/acme/model"
    assert "membership" not in said


@pytest.mark.parametrize("what", ["move", "join"])
def test_o67_move_or_join_in_flight_does_not_survive_the_reset(hub: RunningHub, what: str) -> None:
    """The caller was authenticated before the reset, and the body was received after it."""
    vic, att = create_user(hub, "vic", verified=False), create_user(hub, "att")
    trap = create_organization(hub, "trap", att)
    with api(hub, create_token(hub, vic)) as script, browser_of(hub, att) as accomplice:
        create_repo(script, "vic/model")
        at = "/organizations/trap/settings/members"
        assert submit(accomplice, at, at, invitee="vic", role="write").status_code == 303
    with browser_of(hub, vic) as creator:
        invitation_id = invitation_of(creator)
    actor = Actor(vic.name, vic.id, credentials_version=vic.credentials_version)
    reset(hub, vic)

    async def under_way(opened: Hub) -> None:
        if what == "join":
            invitation = await invitations.find_own(opened.accounts, vic, invitation_id)
            await invitations.accept(opened.accounts, vic, invitation, actor)
        else:
            repo = await store.named(opened.repos.db, "model", "vic", "model")
            assert repo is not None
            to = RepoOwner("org", trap.id, "trap")
            await transfer.move(opened.repos, repo, to, "model", actor, leave_redirect=True)

    with pytest.raises(Unauthorized):
        hub.call(under_way)
