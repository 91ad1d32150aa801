"""Where a run spends its time: `pytest --times FILE` writes the seconds of each test, this program prints tables.

    python -m tests.bed.times            prints the last run of `make test`
    python -m tests.bed.times FILE...    prints the run or runs in these files

`seconds` are those of the workers' clocks: a test that waits counts as much as a test that computes. `CPU` is the
processor time of the worker, with all its threads and with the child processes that it has waited for. PostgreSQL,
Chromium and processes of the fork server are not included.
"""

import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.bed.processes import ROOT

FOLDER = ROOT / "build/times"
_SLOWEST = 50


_PHASES = ("setup", "call", "teardown")
_CPU = pytest.StashKey[float]()


class Time(NamedTuple):
    test: str
    group: str
    seconds: float
    # CPU seconds of setup, call and teardown.
    cpu: tuple[float, float, float]


class CpuMeter:
    """A pytest plugin that adds the CPU seconds of each phase to its report. It runs in every worker."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        vars(report)["cpu"] = item.stash.get(_CPU, 0.0)
        return report

    def _measured(self, item: pytest.Item) -> Generator[None, Any, Any]:
        before = _cpu_seconds()
        try:
            return (yield)
        finally:
            item.stash[_CPU] = _cpu_seconds() - before


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Recorder:
    """A pytest plugin. With pytest-xdist it runs in the controller, which gets the reports of all workers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cpu: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._groups: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._cpu[report.nodeid][report.when] = getattr(report, "cpu", 0.0)
        self._groups[report.nodeid] = group_of(report.nodeid, is_fault="faults" in report.keywords)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        found = [
            (
                test,
                self._groups[test],
                round(spent, 3),
                [round(self._cpu[test].get(phase, 0.0), 4) for phase in _PHASES],
            )
            for test, spent in self._seconds.items()
        ]
        self._file.write_text(json.dumps(found))


def group_of(test: str, *, is_fault: bool) -> str:
    if is_fault:
        return "faults"
    if test.startswith(("tests/browser/", "tests/clients/")):
        return "browser and clients"
    parameters = test.partition("[")[2]
    return next((engine for engine in ("sqlite", "postgres") if engine in parameters), "no engine chosen")


def tables(times: Sequence[Time]) -> str:
    groups = _shares(times, "group", lambda time: time.group)
    folders = _shares(times, "folder", lambda time: time.test.partition("::")[0].split("/")[1])
    files = _shares(times, "file", lambda time: time.test.partition("::")[0].removeprefix("tests/"))
    slowest = sorted(times, key=lambda time: -time.seconds)[:_SLOWEST]
    rows = [f"| {time.seconds:.1f} | {sum(time.cpu):.1f} | `{time.test.removeprefix('tests/')}` |" for time in slowest]
    heading = ["| seconds | CPU | test |", "|---:|---:|---|"]
    return "\n".join([*groups, "", *folders, "", *files[: _SLOWEST + 2], "", *heading, *rows])


def _shares(times: Sequence[Time], heading: str, kind_of: Callable[[Time], str]) -> list[str]:
    """A table with a row for each kind, those with most CPU seconds first."""
    of_kind: defaultdict[str, list[Time]] = defaultdict(list)
    for test in times:
        of_kind[kind_of(test)].append(test)
    whole = sum(sum(test.cpu) for test in times) or 1
    rows: list[tuple[float, str]] = []
    for kind, found in of_kind.items():
        seconds = sum(test.seconds for test in found)
        phases = [sum(test.cpu[phase] for test in found) for phase in range(len(_PHASES))]
        cpu = sum(phases)
        figures = [f"{len(found):,}", f"{seconds:,.0f}", f"{cpu:,.0f}", f"{cpu / whole:.0%}"]
        figures += [f"{spent:,.0f}" for spent in phases]
        rows.append((cpu, f"| {kind} | {' | '.join(figures)} |"))
    titles = ["tests", "seconds", "CPU", "share", *_PHASES]
    return [
        f"| {heading} | {' | '.join(titles)} |",
        f"|---|{'---:|' * len(titles)}",
        *(row for _, row in sorted(rows, key=lambda row: -row[0])),
    ]


def main(files: list[Path]) -> None:
    found = [
        Time(test, group, seconds, tuple(cpu))
        for file in files
        for test, group, seconds, cpu in json.loads(file.read_text())
    ]
    if not found:
        sys.exit("No times were recorded: run make test first.")
    print(tables(found))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.json")))
