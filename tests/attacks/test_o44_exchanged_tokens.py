"""O44: tokens of apps follow changes that are made on another machine.

Exchanged tokens answer 401 as if revoked; after a demotion, and under a consent, they follow the role.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.bed import devices
from tests.bed.apps import Client, create_app
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.model import App
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

SCOPES = ("openid", "profile", "write-repos")
Change = Callable[[Hub, Organization, User, Client], Awaitable[object]]


def _paused(app: App) -> App:
    return replace(app, exchange=replace(app.exchange, paused=True))


ENDS: dict[str, Change] = {
    "removed": lambda opened, acme, bob, _: members.remove(opened.accounts, acme, bob, SYSTEM),
    "disabled": lambda opened, acme, bob, _: operator_actions.disable(opened.accounts, bob),
    "privilege taken": lambda opened, acme, bob, client: privileges.set_exchange(
        opened.oauth, client.id, False, SYSTEM
    ),
    "off the plan": lambda opened, acme, bob, _: settings.set_plan(opened.accounts, acme, "team", SYSTEM),
    "paused": lambda opened, acme, bob, client: management.update(opened.oauth, client.app, _paused, SYSTEM),
    "app deleted": lambda opened, acme, bob, client: management.delete(opened.oauth, client.app, SYSTEM),
    "organization deleted": lambda opened, acme, bob, client: settings.delete(opened.accounts, acme, SYSTEM),
}


@dataclass
class Scene:
    here: RunningHub
    there: RunningHub
    acme: Organization
    bob: User
    client: Client

    def change(self, how: Change) -> None:
        self.here.call(lambda opened: how(opened, self.acme, self.bob, self.client))

    def try_all(self, token: str) -> list[int]:
        """whoami, read and write, on the other machine."""
        with api(self.there, token) as program:
            return [
                program.get("/api/whoami-v2").status_code,
                program.get("/oauth/userinfo").status_code,
                program.get("/api/models/acme/secret").status_code,
                send_commit(program, "acme/secret", {"a.txt": b"a"}).status_code,
            ]


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[Scene]:
    # Two machines share one database and one folder of repos.
    url = engine.fresh_url()
    with run_hub(settings_for(url, tmp_path)) as here, run_hub(settings_for(url, tmp_path)) as there:
        ada, bob = create_user(here, "ada"), create_user(here, "bob")
        acme = create_organization(here, "acme", ada, bob="write")
        with api(here, create_token(here, ada)) as script:
            create_repo(script, "acme/secret", private=True)
        yield Scene(here, there, acme, bob, create_exchange_app(here, acme, scopes=SCOPES))


@pytest.mark.parametrize("how", list(ENDS))
def test_o44_exchanged_token_ends_with_what_it_was_issued_under(scene: Scene, how: str) -> None:
    token = exchange_token(scene.client, "bob@example.org")["access_token"]
    assert scene.try_all(token) == [200] * 4
    scene.change(ENDS[how])
    assert scene.try_all(token) == [401] * 4
    if how not in ("app deleted", "organization deleted"):
        about = scene.client.post("/oauth/introspect", {"token": token})
        assert about.json() == {"active": False}


def test_o44_exchanged_token_follows_the_role(scene: Scene) -> None:
    token = exchange_token(scene.client, "bob@example.org")["access_token"]
    assert scene.try_all(token) == [200] * 4
    scene.change(lambda opened, acme, bob, _: members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM))
    assert scene.try_all(token) == [200, 200, 200, 403]


def test_o44_new_secret_does_not_end_tokens(scene: Scene) -> None:
    token = exchange_token(scene.client, "bob@example.org")["access_token"]
    scene.change(lambda opened, acme, bob, client: management.refresh_secret(opened.oauth, client.app, 0, SYSTEM))
    assert scene.try_all(token) == [200] * 4


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_o44_device_token_follows_the_membership_and_the_role(scene: Scene, how: str) -> None:
    """It depends on a consent, so it still identifies the user; access to the organization is lost, or what the
    role allowed.
    """
    app = create_app(scene.here, name="Device", scopes=SCOPES)
    started = devices.start(app)
    devices.approve(scene.here, scene.bob, started["user_code"], " ".join(SCOPES), orgs=[scene.acme.id])
    token = devices.poll(app, started["device_code"]).json()["access_token"]
    assert scene.try_all(token) == [200] * 4
    if how == "removed":
        scene.change(ENDS["removed"])
        assert scene.try_all(token) == [200, 200, 404, 404]
    else:
        scene.change(lambda opened, acme, bob, _: members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM))
        assert scene.try_all(token) == [200, 200, 200, 403]


def test_o44_exchanged_token_is_revoked_by_its_own_app_only(scene: Scene) -> None:
    one, other = (exchange_token(scene.client, "bob@example.org")["access_token"] for _ in range(2))
    stranger = create_app(scene.here, organization=scene.acme, name="Stranger")
    assert stranger.post("/oauth/revoke", {"token": one}).status_code == 400
    assert scene.try_all(one)[0] == 200
    assert scene.client.post("/oauth/revoke", {"token": one}).status_code == 200
    assert (scene.try_all(one)[0], scene.try_all(other)[0]) == (401, 200)
