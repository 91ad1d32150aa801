"""Syncing files, folders and new objects to disk, before anything points at them.

Objects are written first and synced in one batch. Syncing one by one would wait for the disk twice per object, for the
file and for its folder. The batch helps where a sync is slow or stalls; on a fast, idle disk it does not
(bench/README.md).
"""

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hubgate.server.storage.fsync import sync_path

# These threads only wait for the disk. The threads that write objects wait for them, so the pools are separate.
_WORKERS = 8
_THREADS = ThreadPoolExecutor(_WORKERS, thread_name_prefix="sync")


def sync_objects(folder: Path, shas: Iterable[str]) -> None:
    """Sync loose objects, existing ones included: the process that wrote them may have died before its sync.

    The folders are divided among few threads, because starting a task costs as much as a sync on a fast disk. The
    calling thread takes a share.
    """
    by_folder: dict[str, list[str]] = {}
    for sha in dict.fromkeys(shas):
        by_folder.setdefault(f"{folder}/objects/{sha[:2]}", []).append(sha[2:])
    items = list(by_folder.items())
    tasks = max(1, min(_WORKERS, len(items)))
    waiting = [_THREADS.submit(_sync, items[number::tasks]) for number in range(1, tasks)]
    _sync(items[::tasks])
    for each in waiting:
        each.result()


def _sync(items: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Sync files and then their folder, for which little is left to do by then."""
    for folder, names in items:
        for path in (*(f"{folder}/{name}" for name in names), folder):
            # An object may be in a pack instead, which was synced when it was received.
            with contextlib.suppress(FileNotFoundError):
                sync_path(path)
