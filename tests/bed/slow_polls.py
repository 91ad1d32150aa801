"""Polls of a process of the test build that are so far apart that only signals are in time."""

import os

from hubgate.server.storage.database import Database

POLL_SECONDS = "TEST_POLL_SECONDS"


def slow_down_polls(db: Database) -> None:
    """TEST_POLL_SECONDS sets how often the process looks for work that no signal has announced."""
    if seconds := os.environ.get(POLL_SECONDS):
        db.poll_seconds = float(seconds)
