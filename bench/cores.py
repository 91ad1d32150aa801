"""One core for whoever is measured, the others for what serves it."""

import os
import shutil
from collections.abc import Sequence

_MEASURED = 0


def pinned(command: Sequence[str]) -> list[str]:
    """To one core, where the system can; else as it is."""
    taskset = shutil.which("taskset")
    return [taskset, "-c", str(_MEASURED), *command] if taskset and (os.cpu_count() or 1) > 1 else list(command)


def aside(command: Sequence[str]) -> list[str]:
    """To all the other cores."""
    taskset, count = shutil.which("taskset"), os.cpu_count() or 1
    return [taskset, "-c", f"{_MEASURED + 1}-{count - 1}", *command] if taskset and count > 1 else list(command)
