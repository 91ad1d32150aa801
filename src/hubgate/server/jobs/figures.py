"""How much work there is, for operators and tests: what runs, what waits, what was dropped."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Figures:
    """Of one pool. `abandoned` are jobs whose client left, `expired` those whose deadline passed."""

    pool: str
    running: int = 0
    queued: int = 0
    abandoned: int = 0
    expired: int = 0
    # Called after every change, by any thread.
    changed: Callable[["Figures"], None] = field(default=lambda _: None, repr=False)


ALL: list[Figures] = []


def figures_of(pool: str) -> Figures:
    """New ones, in the list of all."""
    figures = Figures(pool)
    ALL.append(figures)
    return figures
