"""O66, W41: clocks that differ between processes neither restore an ended grant nor end a valid one."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.app_webhooks import ACME_PATH, SCOPES, WATCHED, AppWebhookScenario
from tests.bed.apps import Client
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, create_user
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver

from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import members, settings, store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import privileges
from hubgate.server.resources import Hub

ALL_READ = {"ada/open", "ada/secret", "acme/secret"}


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def join(stage: AppWebhookScenario, user: User) -> None:
    async def work(opened: Hub) -> None:
        now = opened.clock()
        await opened.db.write(lambda tx: store.add_member(tx, stage.acme.id, user.id, Role.ADMIN, now))

    stage.hub.call(work)


def leave(stage: AppWebhookScenario, user: User) -> None:
    stage.hub.call(lambda opened: members.remove(opened.accounts, stage.acme, user, SYSTEM))


def create(client: httpx.Client, receiver: Receiver) -> dict[str, str]:
    watched = [{"type": "org", "name": "acme"}, {"type": "user", "name": "ada"}]
    answer = client.post(ACME_PATH, json={"url": receiver.url, "watched": watched})
    assert answer.status_code == 200, answer.text
    made: dict[str, str] = answer.json()["webhook"]
    return made


def test_o66_membership_that_starts_again_at_the_same_time_is_a_new_one(hub: RunningHub, receiver: Receiver) -> None:
    """The clock of the machine that adds the member again is behind by exactly that much."""
    stage = AppWebhookScenario(hub)
    join(stage, create_user(hub, "bob"))
    token = stage.grant("openid webhooks read-repos", stage.acme)
    with api(hub, token) as app:
        create_webhook(app, receiver.url, *WATCHED)
        assert app.get("/api/models/acme/secret").status_code == 200
        assert stage.repos_received(receiver) == ALL_READ
        leave(stage, stage.ada)
        join(stage, stage.ada)
        assert app.get("/api/models/acme/secret").status_code == 404
    assert stage.connected("GET").json()["organizations"] == []
    assert stage.repos_received(receiver) == ALL_READ - {"acme/secret"}


@pytest.mark.parametrize("behind", [0, 60])
def test_o66_grant_of_a_machine_whose_clock_is_behind_is_valid(
    hub: RunningHub, receiver: Receiver, behind: int
) -> None:
    hub.clock.advance(3600)
    stage = AppWebhookScenario(hub)
    app = create_exchange_app(hub, stage.acme, scopes=SCOPES)
    hub.clock.advance(-behind)
    token = stage.grant("openid webhooks read-repos", stage.acme)
    with api(hub, token) as consented:
        assert consented.get("/api/models/acme/secret").status_code == 200
    with api(hub, exchange_token(app, "ada@example.org", scope="webhooks read-repos")["access_token"]) as client:
        webhook = create(client, receiver)
    assert stage.repos_received(receiver) == {"ada/open", "acme/secret"}
    stage.check_grants()
    assert stage.state(webhook, ACME_PATH) is False


async def end_and_begin(opened: Hub, what: str, stage: AppWebhookScenario, app: Client) -> None:
    if what == "plan":
        for plan in ("free", "enterprise"):
            await settings.set_plan(opened.accounts, stage.acme, plan, SYSTEM)
    elif what == "privilege":
        for given in (False, True):
            await privileges.set_exchange(opened.oauth, app.id, given, SYSTEM)


@pytest.mark.parametrize("behind", [30, 60], ids=["behind", "at the same moment"])
@pytest.mark.parametrize("what", ["membership", "plan", "privilege", "pause"])
def test_w41_webhook_ends_with_an_interruption_recorded_by_a_slow_clock(
    hub: RunningHub, receiver: Receiver, what: str, behind: int
) -> None:
    stage = AppWebhookScenario(hub)
    join(stage, create_user(hub, "bob"))
    app = create_exchange_app(hub, stage.acme, scopes=SCOPES)
    hub.clock.advance(60)
    with api(hub, exchange_token(app, "ada@example.org", scope="webhooks read-repos")["access_token"]) as client:
        webhook = create(client, receiver)
    assert stage.repos_received(receiver) == {"ada/open", "acme/secret"}
    hub.clock.advance(-behind)
    if what == "membership":
        leave(stage, stage.ada)
        join(stage, stage.ada)
    elif what == "pause":
        with api(hub, stage.token) as admin:
            for paused in (True, False):
                path = f"/api/organizations/acme/settings/applications/{app.id}"
                assert admin.patch(path, json={"paused": paused}).status_code == 200
    else:
        hub.call(lambda opened: end_and_begin(opened, what, stage, app))
    assert stage.repos_received(receiver) == set()
    stage.check_grants()
    assert stage.state(webhook, ACME_PATH) == "suspended-after-failure"
