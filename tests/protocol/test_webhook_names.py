"""Names that are watched before they exist, and renamed repos: which watchers receive events, however late."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, settle

from hubgate.server.accounts.model import User
from hubgate.server.resources import Hub
from hubgate.server.webhooks.fanout.fanning import FanOut

HOUR = 3600
PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def bob(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "bob"))) as client:
        yield client


def delete(client: httpx.Client, name: str) -> None:
    assert client.request("DELETE", "/api/repos/delete", json={"name": name}).status_code == 200


def move(client: httpx.Client, old: str, new: str) -> None:
    asked = {"fromRepo": old, "toRepo": new, "type": "model"}
    assert client.post("/api/repos/move", json=asked).status_code == 200


def received(receiver: Receiver, webhook: dict[str, Any]) -> list[str]:
    mine = [one for one in receiver.received if one.headers["x-hubgate-webhook"] == webhook["id"]]
    return [f"{one.kind} {one.json['repo']['name']}" for one in mine]


@pytest.mark.parametrize("ahead", [2, HOUR // 2, 2 * HOUR])
def test_watch_binds_despite_different_clocks(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, bob: httpx.Client, ahead: int
) -> None:
    """Another machine's clock may be ahead, and the creation of a repo starts before the repo exists."""
    hub.clock.advance(ahead)
    webhooks = [create_webhook(bob, receiver.url, "model:ada/soon"), create_webhook(bob, receiver.url, "user:eve")]
    hub.clock.advance(-ahead)
    create_repo(ada, "soon")
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        create_repo(eve, "first")
    settle(hub)
    create_commit(ada, "ada/soon", {"a.txt": b"a"})
    settle(hub)
    assert received(receiver, webhooks[0]) == ["repo create ada/soon", "repo.content update ada/soon"]
    assert received(receiver, webhooks[1]) == ["repo create eve/first"]


def test_repo_deleted_before_it_was_watched_does_not_bind(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, bob: httpx.Client
) -> None:
    """With a delayed fan-out: a watch binds to the next repo of that name, not to a deleted one."""
    before = create_webhook(bob, receiver.url, "model:ada/x")
    later = create_webhook(bob, receiver.url, "user:bob")
    hub.clock.advance(1)
    create_repo(ada, "x")
    delete(ada, "x")
    hub.clock.advance(1)
    watched = {"watched": [{"type": "model", "name": "ada/x"}]}
    assert bob.post(f"{PATH}/{later['id']}", json=watched).status_code == 200
    settle(hub)
    assert received(receiver, before) == ["repo create ada/x", "repo delete ada/x"]
    assert received(receiver, later) == []
    create_repo(ada, "x")
    settle(hub)
    assert received(receiver, later) == ["repo create ada/x"]


def test_watch_that_never_binds_does_not_delay_the_fan_out(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client
) -> None:
    """Anyone may watch an organization by a user's name, or a deleted repo: many events are still processed in one
    step.
    """
    create_repo(ada, "gone")
    delete(ada, "gone")
    webhook = create_webhook(ada, receiver.url, "model:ada/tiny")
    create_webhook(ada, receiver.url, "org:ada", "dataset:ada/tiny", "model:ada/gone")
    create_repo(ada, "tiny")
    for number in range(60):
        switch = {"discussionsDisabled": number % 2 == 0}
        assert ada.put("/api/models/ada/tiny/settings", json=switch).status_code == 200

    async def steps(opened: Hub) -> int:
        fan_out, count = FanOut(opened.webhooks), 0
        while await fan_out.step():
            count += 1
        return count

    assert hub.call(steps) <= 4
    settle(hub)
    assert len(received(receiver, webhook)) == 61


def test_watch_by_a_former_name_of_the_owner_binds(
    hub: RunningHub, receiver: Receiver, ada: httpx.Client, bob: httpx.Client, user: User
) -> None:
    create_organization(hub, "acme", user)
    hub.clock.advance(24 * HOUR)
    with browser_of(hub, user) as browser:
        at = "/organizations/acme/settings"
        assert submit(browser, f"{at}/profile", f"{at}/rename", name="apex").status_code == 303
    webhook = create_webhook(bob, receiver.url, "model:acme/soon")
    create_repo(ada, "soon", organization="apex")
    settle(hub)
    assert received(receiver, webhook) == ["repo create apex/soon"]


def test_moves_are_sent_with_their_target_at_that_time(
    hub: RunningHub, receiver: Receiver, user: User, ada: httpx.Client, bob: httpx.Client
) -> None:
    """Not with the repo's name at the time of the fan-out."""
    for name in ("aorg", "borg", "corg"):
        create_organization(hub, name, user)
    first, second, third = (create_webhook(bob, receiver.url, f"org:{name}") for name in ("aorg", "borg", "corg"))
    by_name = create_webhook(bob, receiver.url, "model:corg/there")
    create_repo(ada, "m", organization="aorg")
    move(ada, "aorg/m", "borg/m")
    move(ada, "borg/m", "corg/there")
    settle(hub)
    assert received(receiver, first) == ["repo create aorg/m", "repo move aorg/m"]
    assert received(receiver, second) == ["repo move aorg/m", "repo move borg/m"]
    assert received(receiver, third) == ["repo move borg/m"]
    assert received(receiver, by_name) == ["repo move borg/m"], "what came before is not of that name"
    create_commit(ada, "corg/there", {"a.txt": b"a"})
    settle(hub)
    assert received(receiver, third)[-1] == received(receiver, by_name)[-1] == "repo.content update corg/there"
    assert len(received(receiver, first)) == 2
