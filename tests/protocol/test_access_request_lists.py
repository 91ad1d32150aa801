"""Lists and the report of access requests to a gated repo."""

from collections.abc import Iterator

import pytest
from tests.bed.clock import START
from tests.bed.gated_repo import AT, REPO, Scene, ask, create_scene, gate, handle, listed
from tests.bed.people import api, browser_of, create_token, create_user, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.storage.database import Tx


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    with create_scene(hub) as created:
        yield created


@pytest.mark.one_engine
def test_lists_are_filtered_and_paged_and_reported(scene: Scene) -> None:
    gate(scene)
    for name in ("u1", "u2", "u3"):
        with api(scene.hub, create_token(scene.hub, create_user(scene.hub, name))) as client:
            ask(client)
        scene.hub.clock.advance(60)
    assert listed(scene, "pending") == ["u3", "u2", "u1"]
    assert listed(scene, "pending", "?q=U2") == ["u2"]
    second = scene.ada.get(f"{AT}/pending").json()[1]["timestamp"]
    assert listed(scene, "pending", f"?after={second}") == ["u3"]
    assert listed(scene, "pending", f"?before={second}") == ["u1"]
    assert scene.ada.get(f"{AT}/pending?after=yesterday").status_code == 400
    assert scene.ada.get(f"{AT}/unknown").status_code == 404
    page = scene.ada.get(f"{AT}/pending?limit=2")
    following = scene.ada.get(page.links["next"]["url"])
    assert [found["user"]["user"] for found in page.json() + following.json()] == ["u3", "u2", "u1"]
    handle(scene.ada, "rejected", user="u1")
    report = scene.wim.get(f"/{REPO}/user-access-report")
    assert report.headers["content-disposition"] == 'attachment; filename="llm-access-requests.json"'
    assert [(found["user"]["user"], found["status"]) for found in report.json()] == [
        ("u3", "pending"),
        ("u2", "pending"),
        ("u1", "rejected"),
    ]


def test_search_finds_full_names_with_letters_outside_ascii(scene: Scene) -> None:
    gate(scene)
    with browser_of(scene.hub, scene.bob_user) as browser:
        assert submit(browser, "/settings/profile", "/settings/profile", fullname="Örjan Åberg").status_code == 303
    ask(scene.bob)
    for search in ("Örjan", "ÖRJAN", "Åberg"):
        assert listed(scene, "pending", f"?q={search}") == ["bob"], search


def test_after_and_before_exclude_the_request_with_this_timestamp(scene: Scene) -> None:
    """Timestamps have milliseconds, stored times have microseconds."""
    gate(scene)
    for moment in (0, 123, 999_999, 1_000_001, 4_123_456, 4_123_999):
        scene.hub.clock.now = START + moment
        ask(scene.bob)
        timestamp = scene.ada.get(f"{AT}/pending").json()[0]["timestamp"]
        assert listed(scene, "pending", f"?after={timestamp}") == [], moment
        assert listed(scene, "pending", f"?before={timestamp}") == [], moment
        assert scene.bob.post(f"{AT}/cancel").status_code == 200


def test_long_report_is_sent_in_parts(scene: Scene) -> None:
    """Three parts of at most 200 requests; those of a part were made at the same time and have different statuses."""
    gate(scene)
    number = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450) "
    user = "'u' || n.i, 'u' || n.i, '', 'u' || n.i || '@example.org', '', 0, 0, 1 FROM n"
    status = "CASE n.i % 3 WHEN 0 THEN 'pending' WHEN 1 THEN 'accepted' ELSE 'rejected' END"

    async def fill(tx: Tx) -> None:
        columns = "id, name, fullname, email, website, operator, can_pay, created_at"
        await tx.exec(f"INSERT INTO users ({columns}) {number} SELECT {user}", {})
        columns = "id, repo_id, user_id, status, asked, answers, reason, created_at"
        request = f"'r' || n.i, r.id, 'u' || n.i, {status}, 1, '{{}}', '', n.i / 100 * 1000000 FROM n, repos r"
        await tx.exec(f"INSERT INTO access_requests ({columns}) {number} SELECT {request}", {})

    scene.hub.call(lambda opened: opened.db.write_long(fill))
    report = scene.ada.get(f"/{REPO}/user-access-report")
    assert "content-length" not in report.headers
    said = [(found["timestamp"], found["requestId"]) for found in report.json()]
    assert said == sorted(said, reverse=True)
    assert {request_id for _, request_id in said} == {f"r{number}" for number in range(1, 451)}
    assert len(said) == 450
