"""A thread pool that callers share fairly.

Queued jobs are scheduled round-robin by caller, so a thousand jobs of one caller delay another caller's first job by
one turn at most. A job cannot be interrupted between checkpoints, so no caller and no repo may use all threads: some
stay reserved for other callers, even if idle.

Threads also share the interpreter: libgit2 holds the GIL while it parses a folder of 100,000 files, which blocks the
process for 80 ms. So a caller whose job used a lot of CPU time rests before the next job starts.
"""

import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, thread_time
from typing import Any, TypeVar

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import BACKGROUND, WATCH_AFTER_SECONDS, ClientLeft, JobCaller, current_job_caller
from hubgate.server.jobs.job import Job, deadline_exceeded

T = TypeVar("T")

# Queued jobs of one caller: more than the connections that any client opens.
MAX_WAITING = 1_000
# Above this number of entries, callers whose rest has ended are removed.
MAX_RESTING = 1_000
# Seconds of CPU time that cause no rest: nearly all jobs use less.
FREE_CPU_SECONDS = 0.005


@dataclass
class PoolMetrics:
    """Metrics of one pool. `abandoned` counts jobs whose client left, `expired` jobs that missed their deadline."""

    pool: str
    running: int = 0
    queued: int = 0
    abandoned: int = 0
    expired: int = 0
    # Called after every change, from any thread.
    on_change: Callable[["PoolMetrics"], None] = field(default=lambda _: None, repr=False)


# The metrics of all pools of this process.
POOL_METRICS: list[PoolMetrics] = []


class FairPool:
    """A fair thread pool, used by any number of event loops at once. `_lock` guards the queues and counters."""

    def __init__(self, name: str, threads: int, *, per_caller: int, per_repo: int, rest: float = 0) -> None:
        """`rest` is how many seconds a caller rests for each second of CPU time that a job used."""
        self.metrics = PoolMetrics(name)
        POOL_METRICS.append(self.metrics)
        self._rest = rest
        # The time at which a caller's next job may start, and the callers that have a wake-up timer.
        self._resting_until: dict[str, float] = {}
        self._wake_scheduled: set[str] = set()
        self._threads, self._per_caller, self._per_repo = threads, per_caller, per_repo
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        # Queued jobs by caller, in the order of turns.
        self._queued: OrderedDict[str, deque[Job[Any]]] = OrderedDict()
        self._caller_jobs: Counter[str] = Counter()
        self._repo_jobs: Counter[str] = Counter()

    async def run(self, work: Callable[[], T], seconds: float, *, interruptible: bool) -> T:
        """Run `work` in a thread and return its result; Unavailable if its deadline, `seconds` from now, stops it.

        Interruptible work stops at a checkpoint once its deadline has passed, its client has left or its task was
        cancelled. Other work can only be stopped before it starts: after that, the call waits for it, even past the
        deadline.
        """
        caller = current_job_caller.get()
        caller.check()
        job = Job(work, caller.share_key, caller.repo, seconds, interruptible=interruptible)
        watch = _Watch(self, job, caller, seconds)
        self._add(job)
        timer = job.loop.call_later(WATCH_AFTER_SECONDS, watch.begin)
        caller.waiting.add(watch)
        try:
            return await job.future
        finally:
            timer.cancel()
            watch.end()
            caller.waiting.discard(watch)
            if not job.future.done() or job.future.cancelled():
                self._drop(job)
                job.is_stopped = True

    def _add(self, job: Job[Any]) -> None:
        with self._lock:
            queued = self._queued.setdefault(job.caller, deque())
            if len(queued) >= MAX_WAITING:
                raise Unavailable("Too many of your requests are waiting. Try again.", retry_after=10)
            queued.append(job)
            self.metrics.queued += 1
            self._start_queued()
        self.metrics.on_change(self.metrics)

    def _drop(self, job: Job[Any]) -> bool:
        """Remove a job from the queue; False if the job is not queued."""
        with self._lock:
            queued = self._queued.get(job.caller)
            if queued is None or job not in queued:
                return False
            queued.remove(job)
            if not queued:
                del self._queued[job.caller]
            self.metrics.queued -= 1
        self.metrics.on_change(self.metrics)
        return True

    def stop(self, job: Job[Any], error: BaseException) -> None:
        """Drop a queued job, or end an interruptible job at its next checkpoint. Called on the job's loop."""
        if job.future.done() or (not self._drop(job) and not job.interruptible):
            return
        if isinstance(error, ClientLeft):
            self.metrics.abandoned += 1
        else:
            self.metrics.expired += 1
        job.stop(error)
        self.metrics.on_change(self.metrics)

    def _start_queued(self) -> None:
        while self.metrics.running < self._threads and (job := self._dequeue()) is not None:
            self.metrics.queued -= 1
            self.metrics.running += 1
            self._caller_jobs[job.caller] += 1
            if job.repo is not None:
                self._repo_jobs[job.repo] += 1
            self._executor.submit(self._run, job)

    def _dequeue(self) -> Job[Any] | None:
        """Dequeue the next job whose caller and repo are below their limits."""
        for caller, queued in self._queued.items():
            if self._caller_jobs[caller] >= self._per_caller or self._is_resting(caller, queued[0]):
                continue
            job = next((job for job in queued if job.repo is None or self._repo_jobs[job.repo] < self._per_repo), None)
            if job is None:
                continue
            queued.remove(job)
            if queued:
                self._queued.move_to_end(caller)
            else:
                del self._queued[caller]
            return job
        return None

    def _is_resting(self, caller: str, first: Job[Any]) -> bool:
        until = self._resting_until.get(caller)
        if until is None:
            return False
        left = until - monotonic()
        if left <= 0:
            del self._resting_until[caller]
            return False
        if caller not in self._wake_scheduled:
            self._wake_scheduled.add(caller)
            with contextlib.suppress(RuntimeError):
                first.loop.call_soon_threadsafe(first.loop.call_later, left, self._wake, caller)
        return True

    def _add_rest(self, caller: str, seconds: float) -> None:
        now = monotonic()
        if len(self._resting_until) >= MAX_RESTING:
            self._resting_until = {other: until for other, until in self._resting_until.items() if until > now}
        self._resting_until[caller] = max(self._resting_until.get(caller, 0), now) + seconds

    def _wake(self, caller: str) -> None:
        with self._lock:
            self._wake_scheduled.discard(caller)
            self._start_queued()
        self.metrics.on_change(self.metrics)

    def _run(self, job: Job[Any]) -> None:
        began = thread_time()
        settle = job.run()
        used = thread_time() - began
        with self._lock:
            if used > FREE_CPU_SECONDS and self._rest and job.caller != BACKGROUND.share_key:
                self._add_rest(job.caller, used * self._rest)
            self.metrics.running -= 1
            _decrement(self._caller_jobs, job.caller)
            if job.repo is not None:
                _decrement(self._repo_jobs, job.repo)
            self._start_queued()
        self.metrics.on_change(self.metrics)
        # The loop may have been closed since the job started.
        with contextlib.suppress(RuntimeError):
            job.loop.call_soon_threadsafe(settle)


class _Watch:
    """Watches the deadline and the client of a job that runs longer than WATCH_AFTER_SECONDS."""

    def __init__(self, pool: FairPool, job: Job[Any], caller: JobCaller, seconds: float) -> None:
        self._pool, self._job, self._caller = pool, job, caller
        self._seconds = seconds
        self._deadline: Any = None

    def begin(self) -> None:
        self._caller.watch()
        self._deadline = self._job.loop.call_later(self._seconds - WATCH_AFTER_SECONDS, self._expire)

    def end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def abandon(self) -> None:
        self._pool.stop(self._job, ClientLeft())

    def _expire(self) -> None:
        self._pool.stop(self._job, deadline_exceeded())


def _decrement(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
