"""The operations on webhooks, against a running hub and a receiver on a real socket."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.processes import ROOT
from tests.bed.replays import run_replays
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, run_receiver, settle

from hubgate import AsyncHub, Hub
from hubgate.client import errors
from hubgate.client.models import Watched
from hubgate.depth import delivery_depth

ADA = [{"type": "user", "name": "ada"}]
URL = "https://ci.example/hook"


@pytest.fixture
def running_hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    with run_hub(settings_for(url, tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def as_user(running_hub: RunningHub) -> Iterator[Callable[[str], Hub]]:
    opened: list[Hub] = []

    def make(name: str) -> Hub:
        opened.append(Hub(running_hub.url, create_token(running_hub, create_user(running_hub, name))))
        return opened[-1]

    yield make
    for hub in opened:
        hub.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def test_six_webhook_operations(as_user: Callable[[str], Hub]) -> None:
    ada = as_user("ada")
    made = ada.create_webhook(URL, watched=ADA, domains=["repo"], secret="s3cret")
    assert (made.url, made.watched, made.domains) == (URL, [Watched("user", "ada")], ["repo"])
    assert (made.secret, made.has_secret, made.status, made.disabled) == ("s3cret", True, "enabled", False)
    assert "s3cret" not in repr(made)
    assert ada.list_webhooks() == [replace(made, secret=None)] == [ada.get_webhook(made.id)]
    changed = ada.update_webhook(made.id, watched=["org:acme", Watched("model", "ada/x")])
    assert changed.watched == [Watched("org", "acme"), Watched("model", "ada/x")]
    assert (changed.url, changed.domains, changed.secret, changed.has_secret) == (URL, ["repo"], None, True)
    assert ada.update_webhook(made.id, secret="").has_secret is False
    assert ada.update_webhook(made.id, "https://other.example/", domains=["discussion"]).domains == ["discussion"]
    assert ada.disable_webhook(made.id).status == "disabled"
    assert ada.enable_webhook(made.id).status == "enabled"
    assert ada.delete_webhook(made.id) is None  # type: ignore[func-returns-value]
    assert ada.list_webhooks() == []
    with pytest.raises(errors.NotFound):
        ada.get_webhook(made.id)


def test_pull_webhooks_and_invalid_arguments(as_user: Callable[[str], Hub]) -> None:
    ada = as_user("ada")
    made = ada.create_webhook(watched=ADA, pull=True, ordered=True)
    assert (made.url, made.pull, made.ordered) == (None, True, True)
    assert ada.update_webhook(made.id, ordered=False).ordered is False
    assert ada.update_webhook(made.id, ordered=True) == made
    with pytest.raises(TypeError, match="no option 'orderly'"):
        ada.create_webhook(URL, watched=ADA, orderly=True)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="either url or pull"):
        ada.create_webhook(watched=ADA)
    for watched in ("acme", ":acme", {"type": "user"}, {"name": "ada"}, {"type": "user", "name": ""}, None):
        with pytest.raises(ValueError, match="type:name"):
            ada.create_webhook(URL, watched=[watched])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="not a name"):
        ada.update_webhook(None, url=URL, watched=ADA)  # type: ignore[arg-type]
    assert ada.list_webhooks() == [made]
    with pytest.raises(errors.BadRequest):
        ada.create_webhook(URL, watched=[])


def test_examples_in_the_docs_work(running_hub: RunningHub, as_user: Callable[[str], Hub], receiver: Receiver) -> None:
    section = (ROOT / "docs/client.md").read_text().partition("## Watch something")[2].partition("\n## ")[0]
    code = "\n".join(re.findall(r"(?ms)^```python\n(.*?)```", section))
    for written, meant in (("https://ci.acme.dev/webhooks/train", receiver.url), ("whsec_…", "any words of mine")):
        assert written in code
        code = code.replace(written, meant)
    with deliver_in_background(running_hub):
        exec(code, {"hub": as_user("ada")})
    assert receiver.received[0].headers["x-webhook-secret"] == "any words of mine"


def test_webhook_activity_test_and_replay(
    running_hub: RunningHub, as_user: Callable[[str], Hub], receiver: Receiver
) -> None:
    ada = as_user("ada")
    webhook = ada.create_webhook(receiver.url, watched=ADA)
    receiver.status = 500
    ada.create_repo("tiny")
    settle(running_hub)
    (failed,) = ada.webhook_activity(webhook.id)
    assert (failed.state, failed.status, failed.repo.name) == ("retrying", 500, "ada/tiny")
    assert (failed.event.scope, failed.event.action, failed.attempts) == ("repo", "create", 1)
    assert ada.get_delivery(webhook.id, failed.id)["payload"]["repo"]["name"] == "ada/tiny"
    receiver.status = 200
    with deliver_in_background(running_hub):
        assert ada.test_webhook(webhook.id).status == 200
        again = ada.replay_webhook(webhook.id, failed.id)
    assert again.status == 200
    assert ada.get_delivery(webhook.id, again.id)["replayOf"] == failed.id
    assert [one.state for one in ada.webhook_activity(webhook.id, state="retrying")] == ["retrying"]
    assert len(ada.webhook_activity(webhook.id, limit=2)) == 2
    ada.disable_webhook(webhook.id)
    with pytest.raises(errors.Conflict, match="disabled"):
        ada.test_webhook(webhook.id)


def test_replay_since_sends_missed_events_again(
    running_hub: RunningHub, as_user: Callable[[str], Hub], receiver: Receiver
) -> None:
    ada = as_user("ada")
    webhook = ada.create_webhook(receiver.url, watched=ADA)
    ada.disable_webhook(webhook.id)
    for name in ("one", "two", "three"):
        ada.create_repo(name)
        settle(running_hub)
        running_hub.clock.advance(60)
    ada.enable_webhook(webhook.id)
    told: list[tuple[int, int]] = []
    logged = ada.webhook_activity(webhook.id, state="skipped")
    with deliver_in_background(running_hub, run_replays):
        sent = ada.replay_webhook_since(webhook.id, logged[1].at, rate=100, progress=lambda *n: told.append(n))
    assert (sent.total, sent.done, sent.state) == (2, 2, "done")
    assert [one.json["repo"]["name"] for one in receiver.received] == ["ada/two", "ada/three"]
    assert told[-1] == (2, 2)
    later = datetime.now(UTC) + timedelta(days=4000)
    assert ada.replay_webhook_since(webhook.id, later).total == 0
    with pytest.raises(errors.Refused, match="1 to 200"):
        ada.replay_webhook_since(webhook.id, later, rate=0)


def test_replay_is_started_and_cancelled(
    running_hub: RunningHub, as_user: Callable[[str], Hub], receiver: Receiver
) -> None:
    ada = as_user("ada")
    webhook = ada.create_webhook(receiver.url, watched=ADA)
    ada.create_repo("tiny")
    settle(running_hub)
    started = ada.start_replay(webhook.id, datetime(2000, 1, 1, tzinfo=UTC), states=["delivered"])
    assert (started.total, started.done, started.state) == (1, 0, "running")
    assert ada.get_replay(webhook.id, started.id) == started
    assert ada.cancel_replay(webhook.id, started.id).state == "cancelled"
    assert ada.follow_replay(webhook.id, started.id).state == "cancelled"


async def test_webhooks_of_an_organization(running_hub: RunningHub) -> None:
    ada, bob = create_user(running_hub, "ada"), create_user(running_hub, "bob")
    create_organization(running_hub, "acme", ada, bob="write")
    watched = [Watched("org", "acme")]
    async with AsyncHub(running_hub.url, create_token(running_hub, ada)) as hub:
        made = await hub.create_webhook(URL, watched=watched, organization="acme")
        assert await hub.list_webhooks() == []
        assert await hub.list_webhooks(organization="acme") == [made]
        assert (await hub.disable_webhook(made.id, organization="acme")).disabled is True
        assert await hub.webhook_activity(made.id, organization="acme") == []
        await hub.delete_webhook(made.id, organization="acme")
    async with AsyncHub(running_hub.url, create_token(running_hub, bob)) as hub:
        with pytest.raises(errors.Forbidden):
            await hub.list_webhooks(organization="acme")


def test_change_made_by_a_handler_has_a_greater_depth(
    running_hub: RunningHub, as_user: Callable[[str], Hub], receiver: Receiver
) -> None:
    ada = as_user("ada")
    ada.create_webhook(receiver.url, watched=ADA)
    context = delivery_depth.set(2)
    try:
        ada.create_repo("tiny")
    finally:
        delivery_depth.reset(context)
    settle(running_hub)
    assert receiver.received[0].headers["x-hubgate-depth"] == "3"
