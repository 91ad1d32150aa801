"""W31: a test delivery reports on a real repo, so read permission is checked again at each attempt and at a replay."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts.organizations import members
from hubgate.server.audit.model import SYSTEM

PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        started.status = 503
        yield started


@pytest.mark.parametrize("seen", ["replayed", "retried"])
def test_w31_test_delivery_is_not_sent_after_the_permission_is_lost(
    hub: RunningHub, receiver: Receiver, seen: str
) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as watcher:
        create_repo(owner, "acme/secret", private=True)
        settle(hub)
        webhook = create_webhook(watcher, receiver.url, "org:acme")
        at = f"{PATH}/{webhook['id']}"
        with deliver_in_background(hub):
            sent = watcher.post(f"{at}/test").json()
        assert sent["status"] == 503
        assert watcher.get(f"{at}/logs/{sent['id']}").json()["payload"]["repo"]["name"] == "acme/secret"
        hub.call(lambda opened: members.remove(opened.accounts, acme, bob, SYSTEM))
        receiver.status = 200
        if seen == "replayed":
            assert watcher.get(f"{at}/logs/{sent['id']}").json()["payload"] is None
            assert watcher.post(f"{at}/replay/{sent['id']}").status_code == 403
        else:
            hub.clock.advance(7)
            settle(hub)
            assert len(receiver.received) == 1, "nothing more was sent"
            assert watcher.get(f"{at}/logs/{sent['id']}").json()["reason"] == "forbidden"
