"""Threads for the disk and for hashing, which callers share fairly (`jobs/pool.py`)."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hubgate.server.jobs.pool import FairPool

P = ParamSpec("P")
T = TypeVar("T")

_STEPS = FairPool("objects", 8, per_caller=3, per_repo=5)
_STEP_SECONDS = 5 * 60.0
# Hashing a part of a large file.
_HASHES = FairPool("hash", 4, per_caller=2, per_repo=2)
_HASH_SECONDS = 30 * 60.0


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step that is never interrupted once started."""
    return await _STEPS.run(lambda: work(*args, **kwargs), _STEP_SECONDS, interruptible=False)


async def in_hash_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await _HASHES.run(lambda: work(*args, **kwargs), _HASH_SECONDS, interruptible=False)
