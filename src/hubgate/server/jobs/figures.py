"""Metrics of the thread pools, for operators and tests: running, queued, abandoned and expired jobs."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Figures:
    """Metrics of one pool. `abandoned` counts jobs whose client left, `expired` jobs that missed their deadline."""

    pool: str
    running: int = 0
    queued: int = 0
    abandoned: int = 0
    expired: int = 0
    # Called after every change, from any thread.
    changed: Callable[["Figures"], None] = field(default=lambda _: None, repr=False)


ALL: list[Figures] = []


def figures_of(pool: str) -> Figures:
    """Create the metrics of a pool and register them in ALL."""
    figures = Figures(pool)
    ALL.append(figures)
    return figures
