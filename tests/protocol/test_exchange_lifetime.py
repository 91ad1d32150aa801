"""An exchanged token is valid only while everything it was issued under lasts without interruption."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.bed.apps import Client
from tests.bed.exchange import create_exchange_app, exchange_token, send_exchange
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges

Hubs = tuple[RunningHub, RunningHub]
APPS = "/api/organizations/acme/settings/applications"


@dataclass(frozen=True)
class Scene:
    """Tokens are issued and used at `here`; changes are made at `there`, another hub on the same database."""

    here: RunningHub
    there: RunningHub
    ada: User
    bob: User
    acme: Organization
    client: Client

    def tick(self) -> None:
        for hub in (self.here, self.there):
            hub.clock.advance(1)

    def token(self) -> str:
        taken: str = exchange_token(self.client, "bob@example.org")["access_token"]
        self.tick()
        return taken

    def works(self, token: str) -> bool:
        """At the next request, and by introspection."""
        with api(self.here, token) as program:
            status = program.get("/api/whoami-v2").status_code
        told = self.client.post("/oauth/introspect", {"token": token})
        # If its app is deleted, nobody can introspect it.
        assert told.status_code == 401 or told.json()["active"] is (status == 200)
        assert status in (200, 401)
        return status == 200

    def listed(self) -> int:
        with api(self.here, create_token(self.here, self.ada)) as script:
            return len(script.get(f"{APPS}/{self.client.id}/tokens").json())

    def as_admin(self, method: str, path: str, body: object = None) -> None:
        with api(self.there, create_token(self.there, self.ada)) as script:
            answer = script.request(method, path, json=body)
            assert answer.status_code < 300, answer.text


@pytest.fixture
def scene(hubs: Hubs) -> Scene:
    here, there = hubs
    ada, bob = create_user(here, "ada"), create_user(here, "bob")
    acme = create_organization(here, "acme", ada, bob="write")
    scene = Scene(here, there, ada, bob, acme, create_exchange_app(here, acme))
    scene.tick()
    return scene


def set_privilege(scene: Scene, privileged: bool) -> None:
    scene.there.call(lambda hub: privileges.set_exchange(hub.oauth, scene.client.id, privileged, SYSTEM))


def set_plan(scene: Scene, plan: str) -> None:
    scene.there.call(lambda hub: settings.set_plan(hub.accounts, scene.acme, plan, SYSTEM))


def set_pause(scene: Scene, paused: bool) -> None:
    scene.as_admin("PATCH", f"{APPS}/{scene.client.id}", {"paused": paused})


def remove(scene: Scene) -> None:
    scene.as_admin("DELETE", "/api/organizations/acme/members/bob")


def add_again(scene: Scene) -> None:
    scene.there.call(lambda hub: members.add(hub.accounts, scene.acme, scene.bob, Role.ADMIN, SYSTEM))


def leave(scene: Scene) -> None:
    with browser_of(scene.there, scene.bob) as browser:
        address = "/settings/organizations/acme/leave"
        assert submit(browser, address, address).status_code == 303


def pause_on_the_page(scene: Scene) -> None:
    save_limits(scene, paused="on")


def go_on_on_the_page(scene: Scene) -> None:
    save_limits(scene)


def save_limits(scene: Scene, **more: str) -> None:
    with browser_of(scene.there, scene.ada) as browser:
        address = f"/organizations/acme/settings/applications/{scene.client.id}/exchange"
        assert submit(browser, address, address, tokenDuration="28800", **more).status_code == 303


Change = Callable[[Scene], None]
BREAKS: dict[str, tuple[Change, Change]] = {
    "privilege": (lambda scene: set_privilege(scene, False), lambda scene: set_privilege(scene, True)),
    "plan": (lambda scene: set_plan(scene, "team"), lambda scene: set_plan(scene, "enterprise")),
    "pause": (lambda scene: set_pause(scene, True), lambda scene: set_pause(scene, False)),
    "pause on the page": (pause_on_the_page, go_on_on_the_page),
    "membership": (remove, add_again),
    "leaving": (leave, add_again),
}


@pytest.mark.one_engine
@pytest.mark.parametrize("name", BREAKS)
def test_interruption_ends_the_token_permanently(scene: Scene, name: str) -> None:
    broken, repaired = BREAKS[name]
    old = scene.token()
    assert (scene.works(old), scene.listed()) == (True, 1)
    broken(scene)
    assert (scene.works(old), scene.listed()) == (False, 0)
    refused = send_exchange(scene.client, "bob@example.org")
    expected = (400, "invalid_grant") if name in ("membership", "leaving") else (401, "invalid_client")
    assert (refused.status_code, refused.json()["error"]) == expected
    scene.tick()
    repaired(scene)
    assert (scene.works(old), scene.listed()) == (False, 0), "it came back"
    scene.tick()
    new = scene.token()
    assert [scene.works(token) for token in (old, new)] == [False, True]


@pytest.mark.one_engine
def test_other_limits_do_not_affect_live_tokens(scene: Scene) -> None:
    """They apply to later exchanges; live tokens can be revoked."""
    token = scene.token()
    limits = {"allowedRoles": ["admin"], "allowedNetworks": ["203.0.113.0/24"], "tokenDuration": 60, "dailyQuota": 1}
    scene.as_admin("PATCH", f"{APPS}/{scene.client.id}", limits)
    save_limits(scene, dailyQuota="1")
    assert scene.works(token)


@pytest.mark.one_engine
def test_token_follows_the_members_role(scene: Scene) -> None:
    token = scene.token()
    for role in ("read", "admin", "contributor"):
        scene.as_admin("PUT", "/api/organizations/acme/members/bob/role", {"role": role})
        with api(scene.here, token) as program:
            (organization,) = program.get("/api/whoami-v2").json()["orgs"]
        assert (organization["name"], organization["roleInOrg"]) == ("acme", role)


@pytest.mark.one_engine
def test_new_secret_does_not_end_tokens_unless_chosen(scene: Scene) -> None:
    address = f"/organizations/acme/settings/applications/{scene.client.id}/secret"
    tokens = [scene.token() for _ in range(2)]
    scene.as_admin("POST", f"{APPS}/{scene.client.id}/secret", {"overlapSeconds": 3600})
    assert [scene.works(token) for token in tokens] == [True, True]
    with browser_of(scene.there, scene.ada) as browser:
        assert "Revoke the 2 live exchanged tokens too" in browser.get(address).text
        plain = submit(browser, address, address, overlapSeconds="3600")
        assert "exchanged token" not in plain.text
        assert [scene.works(token) for token in tokens] == [True, True]
        ticked = submit(browser, address, address, overlapSeconds="3600", endTokens="on")
        assert "2 exchanged tokens revoked." in ticked.text
        assert [scene.works(token) for token in tokens] == [False, False]
        assert "endTokens" not in browser.get(address).text, "there is nothing to end"


@pytest.mark.one_engine
def test_token_ends_with_its_app_and_its_organization(scene: Scene) -> None:
    first = scene.token()
    scene.as_admin("DELETE", f"{APPS}/{scene.client.id}")
    assert not scene.works(first)
    second = create_exchange_app(scene.here, scene.acme)
    scene.tick()
    token = exchange_token(second, "bob@example.org")["access_token"]
    scene.there.call(lambda hub: settings.delete(hub.accounts, scene.acme, SYSTEM))
    with api(scene.here, token) as program:
        assert program.get("/api/whoami-v2").status_code == 401


@pytest.mark.one_engine
def test_token_revoked_at_one_hub_is_rejected_at_the_other(scene: Scene) -> None:
    token = scene.token()
    scene.as_admin("DELETE", f"{APPS}/{scene.client.id}/tokens?user=bob")
    assert not scene.works(token)


@pytest.mark.one_engine
def test_token_expires_when_announced(scene: Scene) -> None:
    scene.as_admin("PATCH", f"{APPS}/{scene.client.id}", {"tokenDuration": 3600})
    answer = exchange_token(scene.client, "bob@example.org")
    assert answer["expires_in"] == 3600
    scene.here.clock.advance(3599)
    assert scene.works(answer["access_token"])
    scene.here.clock.advance(1)
    assert not scene.works(answer["access_token"])


@pytest.mark.parametrize("name", ["membership", "leaving", "plan"])
def test_different_clocks_do_not_restore_a_token(scene: Scene, name: str) -> None:
    """The machine that issued the token is ahead of the one where the member is removed and added again."""
    broken, repaired = BREAKS[name]
    scene.here.clock.advance(60)
    old = scene.token()
    broken(scene)
    repaired(scene)
    assert not scene.works(old)


@pytest.mark.parametrize("name", BREAKS)
def test_different_clocks_do_not_issue_a_dead_token(scene: Scene, name: str) -> None:
    broken, repaired = BREAKS[name]
    scene.there.clock.advance(60)
    broken(scene)
    repaired(scene)
    assert scene.works(scene.token())
