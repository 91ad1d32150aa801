"""Syncing a file or a folder to disk."""

import os
from pathlib import Path


def sync_path(path: Path | str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
