"""O84: apps that register themselves cannot fill the hub, take over others' apps or pose as registered ones."""

import itertools
from functools import partial
from pathlib import Path

from tests.bed.apps import create_app, tokens_for
from tests.bed.concurrency import run_concurrently
from tests.bed.engines import Engine, settings_for
from tests.bed.people import create_user
from tests.bed.registration import PATH, open_to_registration, register, self_registered
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.hub.context import Limits
from hubgate.server.resources import Hub


def stored(hub: RunningHub) -> int:
    async def count(opened: Hub) -> int:
        row = await opened.db.one("SELECT count(*) AS n FROM apps", {})
        return int(row["n"]) if row else 0

    return hub.call(count)


def test_o84_registrations_are_limited_by_address(engine: Engine, tmp_path: Path) -> None:
    with open_to_registration(engine, tmp_path) as hub:
        answers = run_concurrently([lambda: register(hub)] * 30)
        assert sorted(answer.status_code for answer in answers) == [201] * 20 + [429] * 10
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert (int(refused.headers["retry-after"]) > 0, stored(hub)) == (True, 20)
        assert register(hub, redirect_uris=["x"]).status_code == 400
        hub.clock.advance(60 * 60)
        assert register(hub).status_code == 201
        with hub.client() as anyone:
            assert anyone.post(PATH, json={"client_name": "x" * 40_000}).status_code == 413
            # No client chooses its id, its owner or a secret.
            chosen = {"client_id": "hubgate-cli", "client_secret": "s", "owner_id": "x", "token_exchange": 1}
            given = register(hub, **chosen, client_name="hubgate CLI").json()
            assert (given["client_id"] != "hubgate-cli", "client_secret" in given) == (True, False)
            spoofed = {"x-forwarded-for": "203.0.113.7", "content-type": "application/json"}
            for _ in range(19):
                anyone.post(PATH, content=b'{"redirect_uris": ["https://a.example/"]}', headers=spoofed)
            assert (
                anyone.post(PATH, content=b'{"redirect_uris": ["https://a.example/"]}', headers=spoofed).status_code
                == 429
            )


def test_o84_updates_are_limited_by_address(engine: Engine, tmp_path: Path) -> None:
    with open_to_registration(engine, tmp_path) as hub:
        given = register(hub).json()
        metadata = {"client_id": given["client_id"], "redirect_uris": ["https://app.example/cb"]}
        with hub.client(headers={"authorization": f"Bearer {given['registration_access_token']}"}) as app:
            update = partial(app.put, given["registration_client_uri"])
            assert [update(json=metadata).status_code for _ in range(61)] == [200] * 60 + [429]
            refused = update(json=metadata)
            assert (int(refused.headers["retry-after"]) > 0, "updates" in refused.text) == (True, True)
            assert app.get(given["registration_client_uri"]).status_code == 200
            assert register(hub).status_code == 201, "counted on their own"
            hub.clock.advance(60 * 60)
            assert update(json=metadata).status_code == 200


def test_o84_registrations_from_many_addresses_do_not_fill_the_hub(engine: Engine, tmp_path: Path) -> None:
    """Apps that nobody has approved make room for new ones; those in use, and those just registered, stay."""
    settings = settings_for(engine.fresh_url(), tmp_path, dynamic_registration="on", trusted_proxies="127.0.0.1/32")
    with run_hub(settings, limits=Limits(self_registered_apps=8)) as hub:
        addresses = (f"203.0.{n // 250}.{n % 250}" for n in itertools.count())

        def flood(count: int) -> list[int]:
            one_each = [partial(register, hub, address=next(addresses)) for _ in range(count)]
            return sorted(answer.status_code for answer in run_concurrently(one_each))

        used = self_registered(hub)
        tokens = tokens_for(used, create_user(hub, "ada"), scope="openid")
        assert flood(7) == [201] * 7
        assert (flood(5), stored(hub)) == ([429] * 5, 8)
        refused = register(hub, address=next(addresses))
        assert (refused.headers["retry-after"], "on this hub" in refused.text) == ("600", True)
        hub.clock.advance(10 * 60)
        fresh = self_registered(hub)
        assert flood(6) == [201] * 6
        assert (stored(hub), register(hub, address=next(addresses)).status_code) == (8, 429)
        tokens_for(fresh, create_user(hub, "bob"), scope="openid")
        hub.clock.advance(24 * 60 * 60)
        for _ in range(9):
            assert register(hub, address=next(addresses)).status_code in (201, 429)
        assert stored(hub) == 8
        refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        assert used.post("/oauth/token", refresh).status_code == 200


def test_o84_one_user_cannot_fill_the_hub_by_approving_apps(engine: Engine, tmp_path: Path) -> None:
    """Beyond a share of the places, a user's approvals do not protect apps from making room."""
    settings = settings_for(engine.fresh_url(), tmp_path, dynamic_registration="on", trusted_proxies="127.0.0.1/32")
    with run_hub(settings, limits=Limits(self_registered_apps=4)) as hub:
        used, mallory = self_registered(hub), create_user(hub, "mallory")
        tokens = tokens_for(used, create_user(hub, "ada"), scope="openid")
        tokens_for(used, mallory, scope="openid")
        for _ in range(3):
            tokens_for(self_registered(hub), mallory, scope="openid")
        assert register(hub).status_code == 429
        hub.clock.advance(10 * 60)
        assert [register(hub).status_code for _ in range(4)] == [201] * 3 + [429]
        refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
        assert used.post("/oauth/token", refresh).status_code == 200, "ada uses few apps"


def test_o84_self_registered_apps_have_no_common_owner(engine: Engine, tmp_path: Path) -> None:
    """Apps of one owner may introspect each other's tokens; apps without an owner may not."""
    with open_to_registration(engine, tmp_path) as hub:
        ada, one, other = create_user(hub, "ada"), self_registered(hub), self_registered(hub)
        token = tokens_for(one, ada, scope="openid")["access_token"]
        confidential = create_app(hub, create_user(hub, "olga"))
        assert confidential.post("/oauth/introspect", {"token": token}).json() == {"active": False}
        assert other.post("/oauth/introspect", {"token": token}).status_code == 401
        assert other.post("/oauth/revoke", {"token": token}).status_code == 400
        ownerless = create_app(hub, None)
        assert ownerless.post("/oauth/introspect", {"token": token}).json() == {"active": False}
