"""The clock type that use cases depend on, and time units: integer microseconds since the epoch, as in every table."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], int]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def system_clock() -> int:
    return time.time_ns() // 1000


def iso(moment: int) -> str:
    """Format a time as existing clients parse it: UTC with `Z`. One client raises on a numeric offset."""
    return f"{_iso_second(moment // SECOND)}.{moment // 1000 % 1000:03d}Z"


def iso_or_none(moment: int | None) -> str | None:
    return None if moment is None else iso(moment)


@lru_cache(maxsize=64)
def _iso_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
