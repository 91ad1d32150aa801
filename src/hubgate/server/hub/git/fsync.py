"""Syncs new objects to disk together, before anything points at them.

Objects are written first and synced in one batch. Syncing one by one would wait for the disk twice per object, for the
file and for its folder. The batch helps where a sync is slow or stalls; on a fast, idle disk it does not
(bench/README.md).
"""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# These threads only wait. Objects are written in other threads, which wait for these.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="sync")


def sync_objects(folder: Path, shas: Iterable[str]) -> None:
    """Sync loose objects, existing ones included: the process that wrote them may have died before its sync."""
    files = [folder / "objects" / sha[:2] / sha[2:] for sha in dict.fromkeys(shas)]
    for _ in _THREADS.map(_sync, [*files, *dict.fromkeys(file.parent for file in files)]):
        pass


def _sync(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # The object is in a pack, which was synced when it was received.
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
