"""CPU pinning: one core for the measured process, the others for supporting processes."""

import os
import shutil
from collections.abc import Sequence

_MEASURED_CORE = 0


def on_measured_core(command: Sequence[str]) -> list[str]:
    """The command pinned to the measured core; unchanged without taskset or with a single core."""
    taskset = shutil.which("taskset")
    return [taskset, "-c", str(_MEASURED_CORE), *command] if taskset and (os.cpu_count() or 1) > 1 else list(command)


def on_other_cores(command: Sequence[str]) -> list[str]:
    """The command pinned to all other cores; unchanged without taskset or with a single core."""
    taskset, count = shutil.which("taskset"), os.cpu_count() or 1
    return [taskset, "-c", f"{_MEASURED_CORE + 1}-{count - 1}", *command] if taskset and count > 1 else list(command)
