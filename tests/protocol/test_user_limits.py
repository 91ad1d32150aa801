"""What every request reads about a user is limited, so that no user can slow the hub down."""

import pytest
from tests.bed.organizations import add_to_many_organizations, role_in
from tests.bed.people import PASSWORD, browser_of, create_organization, create_user, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.sessions.model import MAX_SESSIONS_PER_USER as MAX_SESSIONS
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import Unprocessable
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx


def test_organizations_per_user_are_limited(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", bob)
    add_to_many_organizations(hub, ada, members.MAX_ORGANIZATIONS_PER_USER - 1)
    with browser_of(hub, ada) as browser:
        assert submit(browser, "/organizations/new", name="the-last", fullname="").status_code == 303
        refused = submit(browser, "/organizations/new", name="one-more", fullname="")
        assert refused.status_code == 422
        assert "500 organizations" in refused.text
        assert browser.get("/one-more").status_code == 404

    async def add(opened: Hub) -> None:
        await members.add(opened.accounts, acme, ada, Role.READ, SYSTEM)

    with pytest.raises(Unprocessable, match="ada is in 500 organizations"):
        hub.call(add)
    assert role_in(hub, acme, ada) is None


def test_invitation_can_be_accepted_once_below_the_limit(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", bob)
    add_to_many_organizations(hub, ada, members.MAX_ORGANIZATIONS_PER_USER)
    page = "/organizations/acme/settings/members"
    with browser_of(hub, bob) as admin:
        assert submit(admin, page, page, invitee="ada", role="read").status_code == 303
    with browser_of(hub, ada) as browser:
        shown = browser.get("/settings/organizations").text
        accept = shown[shown.index("/settings/organizations/invitations/") :].partition('"')[0]
        assert submit(browser, "/settings/organizations", accept).status_code == 422
        # The only admin cannot leave, so the membership is deleted in the table.
        sql = "DELETE FROM memberships WHERE org_id = :id"
        hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(sql, {"id": f"{0:024x}"})))
        assert submit(browser, "/settings/organizations", accept).status_code == 303
    assert role_in(hub, acme, ada) == "read"


def test_sessions_per_user_are_limited(hub: RunningHub) -> None:
    """The least recently used session ends."""
    ada = create_user(hub, "ada")
    now = hub.clock()

    async def unit(tx: Tx) -> None:
        sql = """
            INSERT INTO sessions (key, id, user_id, created_at, last_used_at, ip, user_agent)
            VALUES (:key, :id, :user_id, 1, :used, '', '')
        """
        numbers = range(MAX_SESSIONS)
        rows = [{"key": b"%032d" % n, "id": f"{n:024x}", "user_id": ada.id, "used": now - n} for n in numbers]
        await tx.exec_many(sql, rows)

    hub.call(lambda opened: opened.db.write_long(unit))
    with browser_of(hub) as browser:
        assert submit(browser, "/login", username="ada", password=PASSWORD).status_code == 303
        assert browser.get("/settings/profile").status_code == 200

    async def left(tx: Tx) -> list[str]:
        return [row["id"] for row in await tx.all("SELECT id FROM sessions ORDER BY id")]

    ids = hub.call(lambda opened: opened.db.read_long(left))
    assert len(ids) == MAX_SESSIONS
    assert f"{MAX_SESSIONS - 1:024x}" not in ids
    assert f"{MAX_SESSIONS - 2:024x}" in ids
