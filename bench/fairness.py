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
from bench.ground import Ground
from bench.harness import Table, interleaved, table

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


def measure(ground: Ground) -> list[Table]:
    folder, seconds = ground.subfolder("fairness"), ground.budget.seconds(TURN)
    most = int(ground.budget.most * seconds)
    names = itertools.count()

    def turn(kind: str, processes: int) -> list[int]:
        path = folder / f"{next(names)}.db"
        with contextlib.closing(workload.make_sqlite(path)):
            return together(kind, processes, path, seconds, most)

    # Turns are long and start processes, so there are about half as many rounds.
    rounds = (ground.budget.rounds + 1) // 2
    counts = interleaved({name: partial(turn, kind, number) for name, kind, number in CONTESTANTS}, rounds)
    totals = {name: [sum(each) / seconds for each in turns] for name, turns in counts.items()}
    shares = {name: [100 * min(each) / max(1, sum(each)) for each in turns] for name, turns in counts.items()}
    more = {name: {"smaller share %": median(found), "in worst round %": min(found)} for name, found in shares.items()}
    return [table("SQLite, two writers on one file", "units/s in all", ALONE, totals, more)]


def together(kind: str, processes: int, path: Path, seconds: float, most: int) -> list[int]:
    """The number of units that each process completed in the same period."""
    command = [sys.executable, "-m", "bench.writer", kind, str(path), str(seconds), str(most)]
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
            assert writer.stdout.readline() == "ready\n", "a writer did not come up"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        return [int(writer.communicate(timeout=60 + seconds)[0]) for writer in writers]
