"""What looks for work on SQLite, whose one writer waits for it, goes along the indexes that were made for it."""

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


def test_a_crowd_is_not_walked_through(sqlite_template: Path) -> None:
    """Two indexes have the same columns for some of the rows each: one taken for the other is a walk through all."""
    ready = {"ix_deliveries_waiting", "ix_deliveries_untried", "ix_deliveries_tried", "ix_deliveries_leased"}
    assert indexes_of(sqlite_template, store.READY.sql) == ready
    beside = ready - {"ix_deliveries_waiting"} | {"ix_deliveries_beside"}
    assert indexes_of(sqlite_template, store.BESIDE_AND_FIRST.sql) == beside
