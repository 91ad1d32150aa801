"""Rounds, medians and tables.

Between runs, the speed of a machine varies by more than most relevant differences. So contestants take turns (A, B, C,
A, B, C, ...), the median turn counts, and the relevant figure is the ratio to the baseline of the same run.
"""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

T = TypeVar("T")
Operation = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Budget:
    """The length of a run: `scale` multiplies the duration of every turn, `max_operations` limits its operations."""

    rounds: int
    scale: float
    max_operations: int = 200_000

    def seconds(self, turn: float) -> float:
        return turn * self.scale


async def drive(operation: Operation, callers: int, seconds: float, max_operations: int) -> float:
    """Operations per second with concurrent callers, each of which runs one operation after another."""
    done = 0
    started = time.perf_counter()
    deadline = started + seconds

    async def call() -> None:
        nonlocal done
        while done < max_operations and time.perf_counter() < deadline:
            await operation()
            done += 1

    await asyncio.gather(*(call() for _ in range(callers)))
    return done / (time.perf_counter() - started)


def warm_up(contestants: Mapping[str, Callable[[], T]]) -> Mapping[str, Callable[[], T]]:
    """Run an uncounted turn of each contestant to open connections, prepare statements and grow files."""
    for take_turn in contestants.values():
        take_turn()
    return contestants


def run_interleaved(contestants: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    samples: dict[str, list[T]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, take_turn in contestants.items():
            gc.collect()
            samples[name].append(take_turn())
    return samples


@dataclass(frozen=True)
class Line:
    """The result of a contestant: its median, the ratio to the baseline's median, and the range of ratios by round."""

    name: str
    median: float
    ratio: float
    lowest_ratio: float
    highest_ratio: float
    rounds: Sequence[float]
    more: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    title: str
    unit: str
    baseline: str
    lines: Sequence[Line]

    def data(self) -> dict[str, Any]:
        return {**vars(self), "lines": [vars(line) for line in self.lines]}

    def text(self) -> str:
        columns = list(self.lines[0].more)
        head = [self.title, self.unit, "ratio", "in rounds", *columns]
        rows = [
            [
                line.name + (" *" if line.name == self.baseline else ""),
                f"{line.median:,.0f}",
                f"{line.ratio:.2f}",
                f"{line.lowest_ratio:.2f}-{line.highest_ratio:.2f}",
                *(f"{line.more[column]:.1f}" for column in columns),
            ]
            for line in self.lines
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        return "\n".join(_align(row, widths) for row in [head, ["-" * width for width in widths], *rows])


def table(
    title: str,
    unit: str,
    baseline: str,
    samples: Mapping[str, Sequence[float]],
    more: Mapping[str, Mapping[str, float]] | None = None,
) -> Table:
    base = samples[baseline]
    lines = [line(name, figures, base, (more or {}).get(name, {})) for name, figures in samples.items()]
    return Table(title, unit, baseline, lines)


def line(name: str, figures: Sequence[float], base: Sequence[float], more: Mapping[str, float]) -> Line:
    ratios = [figure / other for figure, other in zip(figures, base, strict=True)]
    ratio = median(figures) / median(base)
    return Line(name, median(figures), ratio, min(ratios), max(ratios), list(figures), more)


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if index else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()
