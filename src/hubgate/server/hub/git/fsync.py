"""Syncing files, folders and new objects to disk, before anything points at them.

Objects are written first and synced in one batch. Syncing one by one would wait for the disk twice per object, for the
file and for its folder. The batch helps where a sync is slow or stalls; on a fast, idle disk it does not
(bench/README.md).
"""

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hubgate.server.storage.fsync import sync_path

# These threads only wait for the disk. The threads that write objects wait for them, so the pools are separate.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="sync")


def sync_objects(folder: Path, shas: Iterable[str]) -> None:
    """Sync loose objects, existing ones included: the process that wrote them may have died before its sync."""
    files = [folder / "objects" / sha[:2] / sha[2:] for sha in dict.fromkeys(shas)]
    for _ in _THREADS.map(_sync_if_loose, [*files, *dict.fromkeys(file.parent for file in files)]):
        pass


def _sync_if_loose(path: Path) -> None:
    # An object may be in a pack instead, which was synced when it was received.
    with contextlib.suppress(FileNotFoundError):
        sync_path(path)
