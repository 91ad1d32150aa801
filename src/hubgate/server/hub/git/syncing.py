"""Objects reach the disk together: written first, each where it belongs, and then synced all at once, before anything
points at them. One after another each would wait for the disk twice, for itself and for its folder. That matters where
a sync is slow or stalls; on a fast, idle disk it does not (bench/README.md).
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# They only wait. Not the threads in which objects are written: those wait for these.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="sync")


def sync_objects(folder: Path, shas: Iterable[str]) -> None:
    """Also those that were there before: whoever wrote them may not have come this far."""
    files = [folder / "objects" / sha[:2] / sha[2:] for sha in dict.fromkeys(shas)]
    for _ in _THREADS.map(_sync, [*files, *dict.fromkeys(file.parent for file in files)]):
        pass


def _sync(place: Path) -> None:
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # It is in a pack, which was synced when it came.
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
