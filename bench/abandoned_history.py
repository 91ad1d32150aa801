"""The latency of other requests while twelve anonymous clients request the end of a long history and disconnect
(attack O70).

This benchmark is not a subject of `python -m bench`, because it compares phases of one hub rather than alternatives.
`python -m bench.abandoned_history [--commits N] [--dir FOLDER]` prints a line for each phase.
"""

import argparse
import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import httpx
from tests.bed.git import linear_history, push_import, repo_url
from tests.bed.processes import children_of
from tests.bed.repos import create_commit, create_repo

from bench.harness import Budget
from bench.repo_hubs import SQLITE, RepoHub, repo_hub_process
from bench.workspace import Workspace, code_version, open_workspace

CLIENTS = 12
CONNECTED_SECONDS = 2.0
# The minimum duration of each phase; a slow read extends the phase.
PHASE_SECONDS = 12.0
# More files than the cache of recent files holds, so that every read needs a thread.
FILES = 40_000
_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)

ATTACKS: dict[str, Callable[[int, int], str]] = {
    "pages 190 to 201": lambda number, _: f"/api/models/ada/long/commits/main?limit=1000&p={190 + number}",
    "pages 88 to 99": lambda number, _: f"/api/models/ada/long/commits/main?limit=1000&p={88 + number}",
    "listings with last commits": lambda number, _: f"/api/models/ada/long/tree/main?expand=true&limit={1 + number}",
    "history pages": lambda number, _: f"/ada/long/commits/main?page={80 + number}",
}


@dataclass(frozen=True)
class Phase:
    name: str
    # Seconds per read: reads started before the clients disconnected, and later reads.
    early: list[float]
    late: list[float]
    # Memory of all processes of the hub in MB, at the end and at its peak.
    resident: float
    peak: float
    # CPU seconds used by the hub and its child processes.
    cpu: float

    @property
    def reads(self) -> list[float]:
        return self.early + self.late

    def text(self, base: "Phase") -> str:
        p99 = quantiles(self.reads, n=100)[98] if len(self.reads) > 1 else self.reads[0]
        figures = (median(self.early), median(self.late or self.early), p99, max(self.reads))
        early, late = (figure / median(base.reads) for figure in figures[:2])
        return (
            f"{self.name:<28} {len(self.reads):>6} {1000 * figures[0]:>8.2f} {early:>7.2f} {1000 * figures[1]:>8.2f} "
            f"{late:>7.2f} {1000 * p99:>8.1f} {1000 * figures[3]:>8.1f} {self.resident:>6.0f} {self.peak:>7.0f} "
            f"{self.cpu:>6.1f}"
        )


HEAD = (
    f"{'phase':<28} {'reads':>6} {'early ms':>8} {'ratio':>7} {'late ms':>8} {'ratio':>7} {'p99 ms':>8} {'max ms':>8} "
    f"{'MB':>6} {'peak MB':>7} {'cpu s':>6}"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.abandoned_history")
    parser.add_argument("--commits", type=int, default=200_000)
    parser.add_argument("--dir", type=Path, default=Path("/var/tmp"), help="folder for the hub's data")
    options = parser.parse_args()
    with (
        open_workspace(options.dir, Budget(rounds=1, scale=1.0)) as workspace,
        repo_hub_process(workspace, SQLITE) as hub,
    ):
        clients = f"{CLIENTS} clients that disconnect after {CONNECTED_SECONDS} s"
        print(f"code {code_version()}, {options.commits:,} commits, {clients}")
        _fill(workspace, hub, options.commits)
        reads = _paths()
        with hub.client() as ada:
            # The first request for a page compiles its template.
            ada.get("/ada/long/commits/main").raise_for_status()
        _phase(hub, "warm-up", reads, lambda: None)
        quiet = _phase(hub, "quiet", reads, lambda: None)
        print(f"{HEAD}\n{quiet.text(quiet)}", flush=True)
        for name, target in ATTACKS.items():
            for phase in (
                _phase(hub, name, reads, lambda target=target: _attack(hub, target)),  # type: ignore[misc]
                _phase(hub, "  afterwards", reads, lambda: None),
            ):
                print(phase.text(quiet), flush=True)


def _fill(workspace: Workspace, hub: RepoHub, commits: int) -> None:
    with hub.client() as ada:
        create_repo(ada, "long")
        create_repo(ada, "other")
        create_commit(ada, "ada/other", {f"{number % 200}/{number}.txt": b"%d\n" % number for number in range(FILES)})
    push_import(workspace.subfolder("imported"), linear_history(commits), repo_url(hub.url, "ada/long", hub.token))


def _paths() -> Iterator[str]:
    """Paths of files, each different from the one before."""
    while True:
        yield from (f"/ada/other/resolve/main/{number % 200}/{number}.txt" for number in range(FILES))


def _phase(hub: RepoHub, name: str, paths: Iterator[str], attack: Callable[[], None]) -> Phase:
    used, peak, stop = hub.server.cpu_seconds(), [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            peak[0] = max(peak[0], _resident(hub))

    watching, attacking = threading.Thread(target=watch), threading.Thread(target=attack)
    watching.start()
    early, late = list[float](), list[float]()
    with httpx.Client(base_url=hub.url, headers=hub.authorization, timeout=300, verify=False) as client:
        client.get(next(paths))
        attacking.start()
        started = time.monotonic()
        while time.monotonic() < started + PHASE_SECONDS:
            durations = early if time.monotonic() < started + CONNECTED_SECONDS else late
            began = time.perf_counter()
            response = client.get(next(paths))
            durations.append(time.perf_counter() - began)
            assert response.status_code == 200, response.text
            # A pause, because latency is measured, not throughput.
            time.sleep(0.005)
    attacking.join()
    stop.set()
    watching.join()
    return Phase(name, early, late, _resident(hub), peak[0], hub.server.cpu_seconds() - used)


def _attack(hub: RepoHub, target: Callable[[int, int], str]) -> None:
    host, port = "127.0.0.1", hub.server.port
    with contextlib.ExitStack() as stack:
        for number in range(CLIENTS):
            connection = stack.enter_context(socket.create_connection((host, port), timeout=60))
            connection.sendall(f"GET {target(number, port)} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        time.sleep(CONNECTED_SECONDS)


def _resident(hub: RepoHub) -> float:
    total = 0
    waiting = [hub.server.pid]
    while waiting:
        pid = waiting.pop()
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if found := _RESIDENT.search(Path(f"/proc/{pid}/status").read_text()):
                total += int(found[1])
            waiting += children_of(pid)
    return total / 1024


if __name__ == "__main__":
    main()
