"""Where a run spends its time: `pytest --times FILE` writes the seconds of each test, this program prints tables.

    python -m tests.bed.times            prints the last run of `make test`
    python -m tests.bed.times FILE...    prints the run or runs in these files

The seconds are those of the workers' clocks: a test that waits counts as much as a test that computes.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.bed.processes import ROOT

FOLDER = ROOT / "build/times"
_SLOWEST = 50


class Time(NamedTuple):
    test: str
    group: str
    seconds: float


class Recorder:
    """A pytest plugin. With pytest-xdist it runs in the controller, which gets the reports of all workers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._groups: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._groups[report.nodeid] = group_of(report.nodeid, is_fault="faults" in report.keywords)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        found = [Time(test, self._groups[test], round(spent, 3)) for test, spent in self._seconds.items()]
        self._file.write_text(json.dumps(found))


def group_of(test: str, *, is_fault: bool) -> str:
    if is_fault:
        return "faults"
    if test.startswith(("tests/browser/", "tests/clients/")):
        return "browser and clients"
    parameters = test.partition("[")[2]
    return next((engine for engine in ("sqlite", "postgres") if engine in parameters), "no engine chosen")


def tables(times: Sequence[Time]) -> str:
    groups = _shares(times, lambda time: time.group)
    folders = _shares(times, lambda time: time.test.partition("::")[0].split("/")[1])
    slowest = sorted(times, key=lambda time: -time.seconds)[:_SLOWEST]
    rows = [f"| {time.seconds:.1f} | `{time.test.removeprefix('tests/')}` |" for time in slowest]
    return "\n".join([*groups, "", *folders, "", "| seconds | test |", "|---:|---|", *rows])


def _shares(times: Sequence[Time], kind_of: Callable[[Time], str]) -> list[str]:
    seconds: defaultdict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    for time in times:
        seconds[kind_of(time)] += time.seconds
        counts[kind_of(time)] += 1
    whole = sum(seconds.values()) or 1
    rows = [
        f"| {kind} | {counts[kind]:,} | {spent:,.0f} | {spent / whole:.0%} |"
        for kind, spent in sorted(seconds.items(), key=lambda item: -item[1])
    ]
    return ["| group | tests | seconds | share |", "|---|---:|---:|---:|", *rows]


def main(files: list[Path]) -> None:
    found = [Time(*time) for file in files for time in json.loads(file.read_text())]
    if not found:
        sys.exit("No times were recorded: run make test first.")
    print(tables(found))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.json")))
