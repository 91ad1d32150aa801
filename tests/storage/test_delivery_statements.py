"""No statement of fan-out and delivery reads all deliveries: each has an index, also with a large backlog."""

import pytest
from tests.bed.delivery_statements import statements
from tests.bed.engines import Engine
from tests.bed.query_plans import plans_of

from hubgate.server.storage.database import Database, Tx

# The partial index of each statement that reads deliveries into memory.
INDEXES = {
    "delivering.windows_store _REPLAYS": "ix_deliveries_replays",
    "delivering.windows_store _RETRIES": "ix_deliveries_retries",
    "delivering.windows_store _BLOCKERS": "ix_deliveries_retries",
    "delivering.windows_store _REPOS": "ix_deliveries_untried",
    "delivering.windows_store _LANE": "ix_deliveries_untried",
    "shards.work_store WITH_WORK[0]": "ix_deliveries_untried",
    "shards.work_store WITH_WORK[1]": "ix_deliveries_replays",
    "shards.work_store WITH_WORK[2]": "ix_deliveries_retries",
}
WEBHOOKS, DELIVERIES = 20, 8000

_NUMBERS = "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})"
_ADD_WEBHOOKS = f"""
    {_NUMBERS.format(count=WEBHOOKS)}
    INSERT INTO webhooks (id, domains, private_key, public_key, ordered, state, last_seq, quota_from, quota_used,
        failures, closed_until, created_at)
    SELECT 'w' || n, 'repo', :key, '', 0, 'enabled', 0, 0, 0, 0, 0, 0 FROM numbers
"""
# Most are over; some wait, as untried ones, as retries and as replays.
_ADD_DELIVERIES = f"""
    {_NUMBERS.format(count=DELIVERIES)}
    INSERT INTO deliveries (id, webhook_id, event_id, replay_of, seq, repo_id, repo_seq, repo_type, repo_name, scope,
        action, depth, is_test, state, reason, attempts, due_at, created_at)
    SELECT 'd' || n, 'w' || (1 + n % {WEBHOOKS}), 'e' || n, CASE WHEN n % 60 = 0 THEN 'd' ELSE '' END, n,
        'r' || (n % 7), n, 'model', 'a/b', 'repo', 'create', 0, 0,
        CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'delivered' END,
        '', CASE WHEN n % 50 = 0 THEN 1 ELSE 0 END, n, n
    FROM numbers
"""


async def fill(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        await tx.exec(_ADD_WEBHOOKS, {"key": b""})
        await tx.exec(_ADD_DELIVERIES)

    await db.write_long(unit)


async def plans(engine: Engine) -> dict[str, str]:
    return await plans_of(engine, fill, statements())


@pytest.mark.parametrize("storage", ["sqlite", "postgres 16", "postgres 18"], indirect=True)
async def test_no_statement_reads_all_deliveries(storage: Engine) -> None:
    found = await plans(storage)
    assert len(found) > 30
    for where, plan in found.items():
        lines = [line.strip(" ->") for line in plan.splitlines()]
        whole = [
            line
            for line in lines
            if line.startswith(("Seq Scan on deliveries", "SCAN deliveries", "SCAN d")) and "USING" not in line
        ]
        assert not whole, f"{where}\n{plan}"


async def test_windows_are_read_with_their_partial_indexes(engine: Engine) -> None:
    """Two indexes have the same columns for different rows: with the wrong one a read would see all."""
    found = await plans(engine)
    for name, index in INDEXES.items():
        plan = found[name]
        used = {word for word in plan.replace("(", " ").split() if word.startswith(("ix_deliveries", "uq_deliveries"))}
        assert used == {index}, f"{name}\n{plan}"
