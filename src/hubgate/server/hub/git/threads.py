"""Threads in which objects are read and written and strangers' texts are parsed: disk, zlib and parsers would block
every other request of the process.

Each kind of work has its own pool, because some wait for the disk and others for the processor. Within a pool callers
take turns; one caller has about a third of the threads at most (`jobs/pool.py`).
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hubgate.server.jobs.pool import FairPool

P = ParamSpec("P")
T = TypeVar("T")

# A caller's expensive reads take at most a third of the process's time.
REST = 2.0

# Objects read by libgit2: lookups, listings, walks, diffs. More threads would only wait for the same disk.
READS = FairPool("git", 8, per_caller=3, per_repo=5, rest=REST)
READ_SECONDS = 20.0

# Short steps of something larger: a blob written, a file synced, a part of a download read.
STEPS = FairPool("step", 8, per_caller=3, per_repo=5)
STEP_SECONDS = 5 * 60.0

# What takes minutes for a large file: joining its parts, syncing it.
LONG = FairPool("long", 4, per_caller=2, per_repo=2)
LONG_SECONDS = 30 * 60.0

# YAML and Markdown, checked and rendered for anyone who asks. They use the processor, never the disk.
TEXTS = FairPool("text", 2, per_caller=1, per_repo=1, rest=REST)
TEXT_SECONDS = 20.0

# The card of what is being committed: a commit does not wait behind those who only read.
CARDS = FairPool("card", 2, per_caller=1, per_repo=1)
CARD_SECONDS = 60.0


async def in_read_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """For work that changes nothing: it ends at a checkpoint when its time is over or its client is gone."""
    return await READS.run(lambda: work(*args, **kwargs), READ_SECONDS, interruptible=True)


async def in_text_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await TEXTS.run(lambda: work(*args, **kwargs), TEXT_SECONDS, interruptible=True)


async def in_card_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await CARDS.run(lambda: work(*args, **kwargs), CARD_SECONDS, interruptible=True)


async def in_long_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return await LONG.run(lambda: work(*args, **kwargs), LONG_SECONDS, interruptible=False)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Once begun it runs to its end: it may be half of something."""
    return await STEPS.run(lambda: work(*args, **kwargs), STEP_SECONDS, interruptible=False)
