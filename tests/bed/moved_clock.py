"""The wall clock of a process of the test build, moved while it runs.

TEST_CLOCK names a file with an offset in seconds. Monotonic clocks are not moved.
"""

import os
import time
from pathlib import Path

CLOCK = "TEST_CLOCK"


def follow_clock_file() -> None:
    if not (name := os.environ.get(CLOCK)):
        return
    path, real = Path(name), time.time_ns

    def moved() -> int:
        return real() + int(float(path.read_text()) * 1_000_000_000)

    time.time_ns = moved


def set_clock(path: Path, seconds: float) -> None:
    """Atomic: a process reads the file at any time."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(str(seconds))
    new.rename(path)
