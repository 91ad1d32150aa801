"""Counts of durations in fixed ranges, from which percentiles are estimated. Counts of several hours can be added."""

from collections.abc import Iterable

# The upper limit of each range in milliseconds, inclusive. The last range contains everything longer.
LIMITS = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
RANGES = len(LIMITS) + 1
_LONGEST = 15_000

Counts = tuple[int, ...]
NO_COUNTS: Counts = (0,) * RANGES


def decode(text: str | None) -> Counts:
    return tuple(map(int, text.split())) if text else NO_COUNTS


def encode(counts: Iterable[int]) -> str:
    return " ".join(map(str, counts))


def add(one: Counts, other: Counts) -> Counts:
    return tuple(map(sum, zip(one, other, strict=True)))


def percentile(counts: Counts, share: float) -> int | None:
    """The duration in milliseconds that `share` of all counted ones do not exceed; interpolated within its range."""
    rank = sum(counts) * share
    lower = passed = 0
    for count, upper in zip(counts, (*LIMITS, _LONGEST), strict=True):
        if count and passed + count >= rank:
            return round(lower + (upper - lower) * (rank - passed) / count)
        passed, lower = passed + count, upper
    return None
