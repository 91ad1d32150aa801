"""O72: events caused by guests have their own webhook quota, separate from the owner's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bed.engines import Engine
from tests.bed.public_repo import API, REPO, PublicRepo, hub_with_public_repo
from tests.bed.repos import send_commit
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

QUOTA = 5


@pytest.fixture
def scene(engine: Engine, tmp_path: Path) -> Iterator[PublicRepo]:
    with hub_with_public_repo(engine, tmp_path, egress_allow="127.0.0.0/8", webhook_quota=str(QUOTA)) as opened:
        settle(opened.hub)
        yield opened


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def received_refs(receiver: Receiver) -> list[str]:
    return [ref["ref"] for one in receiver.received for ref in one.json["updatedRefs"]]


def outcomes(scene: PublicRepo, webhook: dict[str, Any]) -> list[tuple[str, str]]:
    logs = scene.ada.get(f"/api/settings/webhooks/{webhook['id']}/logs?limit=100").json()
    return [(log["state"], log.get("reason", "")) for log in reversed(logs)]


@pytest.mark.parametrize("at_once", [True, False], ids=["fanned out together", "one by one"])
def test_o72_guests_events_do_not_use_the_owners_quota(scene: PublicRepo, receiver: Receiver, at_once: bool) -> None:
    webhook = create_webhook(scene.ada, receiver.url, "user:ada", domains=["repo"])
    for number in range(QUOTA + 1):
        scene.create_pull_request({f"{number}.txt": b"x"})
        if not at_once:
            settle(scene.hub)
    for number in range(QUOTA + 1):
        assert send_commit(scene.ada, REPO, {f"hers-{number}.txt": b"x"}).status_code == 200
        if not at_once:
            settle(scene.hub)
    settle(scene.hub)
    assert received_refs(receiver).count("refs/heads/main") == QUOTA
    assert len([ref for ref in received_refs(receiver) if ref.startswith("refs/pr/")]) == QUOTA, "guests have their own"
    within, over = [("delivered", "")] * QUOTA, [("skipped", "quota")]
    assert outcomes(scene, webhook) == [*within, *over, *within, *over]


def test_o72_commits_to_a_guests_pull_request_use_the_guests_quota(scene: PublicRepo, receiver: Receiver) -> None:
    scene.create_pull_request({"first.txt": b"x"})
    settle(scene.hub)
    create_webhook(scene.ada, receiver.url, "model:ada/tiny")
    for number in range(QUOTA + 1):
        assert send_commit(scene.eve, REPO, {f"{number}.txt": b"x"}, rev="refs/pr/1").status_code == 200
    work = scene.clone("eves")
    work.git("fetch", "-q", "origin", "refs/pr/1")
    work.git("checkout", "-q", "FETCH_HEAD")
    work.commit("pushed.txt")
    work.git("push", "-q", "origin", "HEAD:refs/pr/1")
    for number in range(QUOTA):
        assert send_commit(scene.ada, REPO, {f"{number}.txt": b"x"}, rev="refs/pr/1").status_code == 200
    settle(scene.hub)
    assert len(receiver.received) == 2 * QUOTA, "the owner's commits to it are the owner's"


def test_o72_both_quotas_are_renewed_after_a_day(scene: PublicRepo, receiver: Receiver) -> None:
    create_webhook(scene.ada, receiver.url, "user:ada", domains=["repo"])
    for number in range(QUOTA + 1):
        scene.create_pull_request({f"{number}.txt": b"x"})
    settle(scene.hub)
    scene.hub.clock.advance(24 * 60 * 60 + 1)
    scene.create_pull_request({"tomorrow.txt": b"x"})
    settle(scene.hub)
    assert len(receiver.received) == QUOTA + 1


@pytest.mark.one_engine
def test_o72_refs_deleted_by_a_guest_do_not_use_the_owners_quota(scene: PublicRepo, receiver: Receiver) -> None:
    numbers = [scene.create_pull_request({f"{number}.txt": b"x"})[0] for number in range(QUOTA + 1)]
    settle(scene.hub)
    create_webhook(scene.ada, receiver.url, "user:ada", domains=["repo"])
    for num in numbers:
        assert scene.set_status(num, "closed", by=scene.eve).status_code == 200
        assert scene.eve.delete(f"{API}/discussions/{num}/ref").status_code == 200
    assert send_commit(scene.ada, REPO, {"hers.txt": b"x"}).status_code == 200
    settle(scene.hub)
    assert received_refs(receiver)[-1] == "refs/heads/main"


@pytest.mark.one_engine
def test_o72_comments_of_guests_do_not_use_the_owners_quota(scene: PublicRepo, receiver: Receiver) -> None:
    webhook = create_webhook(scene.ada, receiver.url, "user:ada", domains=["discussion"])
    assert scene.eve.post(f"{API}/discussions", json={"title": "A question"}).status_code == 200
    for client, number in [(scene.eve, QUOTA), (scene.ada, QUOTA)]:
        for _ in range(number):
            assert client.post(f"{API}/discussions/1/comment", json={"comment": "more"}).status_code == 201
    settle(scene.hub)
    within, over = [("delivered", "")] * QUOTA, [("skipped", "quota")]
    assert outcomes(scene, webhook) == [*within, *over, *within]
    assert {one.json["event"]["scope"] for one in receiver.received} == {"discussion", "discussion.comment"}
