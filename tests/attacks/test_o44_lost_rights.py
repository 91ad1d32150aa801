"""O44: a member who is removed or demoted loses permissions at the next request, with a session and with a token."""

from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine
from tests.bed.organizations import two_hubs
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, post
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

SETTINGS = "/organizations/acme/settings/members"
MEMBERS = "/api/organizations/acme/members"


def as_admin(browser: httpx.Client, program: httpx.Client) -> list[int]:
    """What an admin reads and changes, with a session and with a token."""
    return [
        browser.get(SETTINGS).status_code,
        post(browser, f"{SETTINGS}/carol/role", role="write").status_code,
        program.put(f"{MEMBERS}/carol/role", json={"role": "read"}).status_code,
        program.get(f"{MEMBERS}?email=carol@example.org").status_code,
    ]


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_session_and_token_of_a_removed_or_demoted_admin_lose_permissions(
    engine: Engine, tmp_path: Path, how: str
) -> None:
    """The change is made on one machine, the next request is sent to another."""
    with two_hubs(engine, tmp_path) as (here, there):
        ada, bob = create_user(here, "ada"), create_user(here, "bob")
        create_user(here, "carol")
        acme = create_organization(here, "acme", ada, bob="admin", carol="read")
        with browser_of(there, bob) as browser, api(there, create_token(there, bob)) as program:
            assert as_admin(browser, program) == [200, 303, 200, 200]

            async def work(opened: Hub) -> None:
                if how == "removed":
                    await members.remove(opened.accounts, acme, bob, SYSTEM)
                else:
                    await members.change_role(opened.accounts, acme, bob, Role.WRITE, SYSTEM)

            here.call(work)
            assert as_admin(browser, program) == [403, 403, 403, 403]
            still_in = how == "demoted"
            assert program.get(MEMBERS).status_code == (200 if still_in else 403)
            assert browser.get("/organizations/acme/members").status_code == (200 if still_in else 403)
            told = [org["name"] for org in program.get("/api/whoami-v2").json()["orgs"]]
            assert told == (["acme"] if still_in else [])


def test_form_opened_before_the_demotion_is_rejected(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="admin")
    with browser_of(hub, bob) as browser:
        csrf = browser.get(SETTINGS).text.split('name="csrf" value="')[1].split('"')[0]
        hub.call(lambda opened: members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM))
        for page in ("", "/ada/role", "/ada/remove", "/bob/role"):
            given = {"csrf": csrf, "role": "admin", "invitee": "eve@example.com"}
            assert browser.post(SETTINGS + page, data=given).status_code == 403
        deleted = browser.post("/organizations/acme/settings/delete", data={"csrf": csrf, "name": "acme"})
        assert deleted.status_code == 403
