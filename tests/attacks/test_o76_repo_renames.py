"""O76: renaming one repo in a loop cannot fill a namespace with redirects."""

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

DAY = 24 * 3600
PER_DAY = 20


class Scene(NamedTuple):
    """`eve` is a contributor of acme, where `ada` is the admin."""

    eve: httpx.Client
    ada: httpx.Client


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="contributor")
    with api(hub, create_token(hub, eve)) as contributor, api(hub, create_token(hub, ada)) as admin:
        yield Scene(contributor, admin)


def move(client: httpx.Client, old: str, new: str) -> httpx.Response:
    return client.post("/api/repos/move", json={"fromRepo": old, "toRepo": new})


def test_o76_repo_may_be_moved_twenty_times_a_day(hub: RunningHub, scene: Scene) -> None:
    create_repo(scene.eve, "acme/m0")
    create_repo(scene.eve, "acme/taken")
    for number in range(PER_DAY):
        assert move(scene.eve, f"acme/m{number}", f"acme/m{number + 1}").status_code == 200
    last = f"acme/m{PER_DAY}"
    assert move(scene.eve, last, "acme/taken").status_code == 409, "what is wrong with a name is still said"
    for client in (scene.eve, scene.ada):
        refused = move(client, last, "acme/one-more")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= DAY
        assert "20 times a day" in refused.json()["error"]
    assert move(scene.eve, "acme/taken", "acme/other").status_code == 200, "another repo is not limited by it"
    hub.clock.advance(DAY + 1)
    assert move(scene.eve, last, "acme/one-more").status_code == 200


def test_o76_concurrent_moves_do_not_pass_the_limit(scene: Scene) -> None:
    create_repo(scene.eve, "acme/m0")
    for number in range(PER_DAY - 3):
        assert move(scene.eve, f"acme/m{number}", f"acme/m{number + 1}").status_code == 200
    old = f"acme/m{PER_DAY - 3}"
    answers = run_concurrently([lambda to=f"acme/x{n}": move(scene.eve, old, to) for n in range(6)])
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 3
