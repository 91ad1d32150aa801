"""Thread pools for reading and writing objects and for parsing untrusted text: disk, zlib and parsers would block every
other request of the process.

Each kind of work has a separate pool, because some kinds wait for the disk and others for the processor. Within a pool
callers take turns; a caller gets at most half of the threads (`jobs/pool.py`).
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hubgate.server.jobs.pool import FairPool

P = ParamSpec("P")
T = TypeVar("T")

# Seconds a caller waits per second of processor time: its expensive reads use at most a third of the process's time.
REST_PER_CPU_SECOND = 2.0

# Reads by libgit2: lookups, listings, walks, diffs. More threads would only wait for the same disk.
READS = FairPool("git", 8, per_caller=3, per_repo=5, rest=REST_PER_CPU_SECOND)
READ_SECONDS = 20.0

# Short steps of a larger task: writing a blob, syncing a file, reading a part of a download.
STEPS = FairPool("step", 8, per_caller=3, per_repo=5)
STEP_SECONDS = 5 * 60.0

# Work that takes minutes for a large file: joining its parts, syncing it.
LONG = FairPool("long", 4, per_caller=2, per_repo=2)
LONG_SECONDS = 30 * 60.0

# Checking YAML and rendering Markdown for any caller. This work uses the processor, never the disk.
TEXTS = FairPool("text", 2, per_caller=1, per_repo=1, rest=REST_PER_CPU_SECOND)
TEXT_SECONDS = 20.0

# Parsing the card of a new commit: a commit does not wait behind readers.
CARDS = FairPool("card", 2, per_caller=1, per_repo=1)
CARD_SECONDS = 60.0


async def in_read_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run read-only work, which stops at a checkpoint when its time limit passes or its client disconnects."""
    return await READS.run(lambda: work(*args, **kwargs), READ_SECONDS, interruptible=True)


async def in_text_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await TEXTS.run(lambda: work(*args, **kwargs), TEXT_SECONDS, interruptible=True)


async def in_card_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await CARDS.run(lambda: work(*args, **kwargs), CARD_SECONDS, interruptible=True)


async def in_long_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await LONG.run(lambda: work(*args, **kwargs), LONG_SECONDS, interruptible=False)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a step that is never interrupted once started: stopping could leave a larger change half done."""
    return await STEPS.run(lambda: work(*args, **kwargs), STEP_SECONDS, interruptible=False)
