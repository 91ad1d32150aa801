"""O70: one caller's searches do not delay others', and are not run for a client that disconnected. Nothing is timed."""

import pytest
from tests.bed.disconnecting_clients import OTHER, client_from, count_answered, send_requests, statuses_after_disconnect
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

SEARCHES = 40
# No repo has any of these tags, so every repo is checked for each of them.
SLOW = "/api/models?" + "&".join(f"filter=none-{number}" for number in range(20))

# One repo copied many times, with as many tags as a card may have.
COPIES = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
INSERT INTO repos (id, type, owner_kind, owner_id, name, private, gated, discussions_disabled, sdk, creator_id, card,
    tags, created_at, updated_at, generation, last_seq, last_discussion)
SELECT 'copy-' || n.i, type, owner_kind, owner_id, name || n.i, private, gated, discussions_disabled, sdk, creator_id,
    card, :tags, created_at, updated_at, 0, 0, 0 FROM repos, n WHERE name = 'one'
"""


@pytest.fixture
def crowded(hub: RunningHub) -> RunningHub:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "one")
        create_repo(ada, "data", "dataset")
    tags = "[" + ",".join(f'"tag-{number}"' for number in range(200)) + "]"
    # The copies are not in the search index, so it is not complete, and lists are read without it.
    for sql, params in ((COPIES, {"tags": tags}), ("DELETE FROM milestones WHERE name = 'search index'", {})):
        hub.call(lambda opened, sql=sql, params=params: opened.db.write_long(lambda tx: tx.exec(sql, params)))
    return hub


def test_one_callers_searches_do_not_delay_others(crowded: RunningHub) -> None:
    with send_requests(crowded, [SLOW] * SEARCHES) as greedy, client_from(crowded, OTHER) as other:
        for _ in range(3):
            assert [found["id"] for found in other.get("/api/datasets").json()] == ["ada/data"]
        assert count_answered(greedy) < SEARCHES // 2


def test_searches_are_not_run_for_disconnected_clients(crowded: RunningHub) -> None:
    assert statuses_after_disconnect(crowded, [SLOW] * SEARCHES).count(200) <= SEARCHES // 2
    assert '"level":"error"' not in crowded.log
