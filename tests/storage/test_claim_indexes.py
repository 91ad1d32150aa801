"""On SQLite, whose only writer waits for them, the statements that claim deliveries use their indexes."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hubgate.server.webhooks.delivering.leases import store


def indexes_of(database: Path, sql: str) -> set[str]:
    with closing(sqlite3.connect(database)) as db:
        given = dict.fromkeys(("webhook_id", "cap", "held_since", "now"), 0)
        plan = db.execute(f"EXPLAIN QUERY PLAN {sql}", given).fetchall()
    steps = [str(step[3]) for step in plan]
    assert not [step for step in steps if step.startswith(("SCAN d", "SCAN p", "SCAN f"))], steps
    return {word for step in steps for word in step.split() if word.startswith("ix_deliveries")}


def test_claims_use_the_partial_indexes(sqlite_template: Path) -> None:
    """Two indexes have the same columns for different rows: with the wrong one a claim would scan all."""
    ready = {"ix_deliveries_waiting", "ix_deliveries_untried", "ix_deliveries_tried", "ix_deliveries_leased"}
    assert indexes_of(sqlite_template, store.READY.sql) == ready
    beside = ready - {"ix_deliveries_waiting"} | {"ix_deliveries_beside"}
    assert indexes_of(sqlite_template, store.BESIDE_AND_FIRST.sql) == beside
