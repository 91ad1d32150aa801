"""The peak memory of a hub's processes, including those that have exited."""

import contextlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bed.processes import children_of

_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def resident_memory(pid: int) -> int:
    """The memory of a process and its descendants at this moment, in bytes."""
    found = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text())
    return (int(found[1]) * 1024 if found else 0) + sum(map(resident_memory, children_of(pid)))


@dataclass
class Peaks:
    """Peak memory in bytes, by process id and name."""

    found: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def highest(self) -> int:
        return max(self.found.values())

    def measure(self, pid: int) -> None:
        """Record the peak memory of a process and its descendants."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{pid}/status").read_text()
            # An exiting process has no VmHWM line.
            if peak := _PEAK.search(status):
                key = (pid, Path(f"/proc/{pid}/comm").read_text().strip())
                self.found[key] = max(self.found.get(key, 0), int(peak[1]) * 1024)
        for child in children_of(pid):
            self.measure(child)


@contextlib.contextmanager
def watch_memory(pid: int) -> Iterator[Peaks]:
    """Poll the memory of a process and its descendants."""
    peaks, stop = Peaks(), threading.Event()

    def poll() -> None:
        while not stop.wait(0.2):
            peaks.measure(pid)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()
        peaks.measure(pid)
