"""Two saturating writers on one SQLite file: the share of each and the total throughput."""

import contextlib
import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from tests.bed.processes import ROOT, environment

from bench import workload
from bench.harness import Table, run_interleaved, table
from bench.workspace import Workspace

TURN = 3.0
GROUP = workload.CALLERS
ALONE = "hub, one process"
# Name, the KIND argument of bench/writer.py, number of processes.
CONTESTANTS = (
    (ALONE, "hub", 1),
    ("hub, two processes", "hub", 2),
    ("busy_timeout, a commit per unit, two", "1", 2),
    (f"busy_timeout, {GROUP} units a commit, two", str(GROUP), 2),
)


def measure(workspace: Workspace) -> list[Table]:
    folder, seconds = workspace.subfolder("fairness"), workspace.budget.seconds(TURN)
    max_operations = int(workspace.budget.max_operations * seconds)
    names = itertools.count()

    def turn(kind: str, processes: int) -> list[int]:
        path = folder / f"{next(names)}.db"
        with contextlib.closing(workload.create_sqlite(path)):
            return run_writers(kind, processes, path, seconds, max_operations)

    # Turns are long and start processes, so there are about half as many rounds.
    rounds = (workspace.budget.rounds + 1) // 2
    counts = run_interleaved({name: partial(turn, kind, number) for name, kind, number in CONTESTANTS}, rounds)
    totals = {name: [sum(each) / seconds for each in turns] for name, turns in counts.items()}
    shares = {name: [100 * min(each) / max(1, sum(each)) for each in turns] for name, turns in counts.items()}
    more = {name: {"smaller share %": median(found), "in worst round %": min(found)} for name, found in shares.items()}
    return [table("SQLite, two writers on one file", "units/s in total", ALONE, totals, more)]


def run_writers(kind: str, processes: int, path: Path, seconds: float, max_operations: int) -> list[int]:
    """Run writers concurrently and return the number of units that each completed in the same period."""
    command = [sys.executable, "-m", "bench.writer", kind, str(path), str(seconds), str(max_operations)]
    with contextlib.ExitStack() as stack:
        writers = [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(processes)
        ]
        for writer in writers:
            stack.callback(writer.kill)
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n", "a writer did not start"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        return [int(writer.communicate(timeout=60 + seconds)[0]) for writer in writers]
