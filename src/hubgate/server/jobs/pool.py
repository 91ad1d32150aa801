"""Threads that callers share fairly.

Waiting jobs take turns by caller, so that a thousand of one caller's delay another's first by one turn at most. And as
a job cannot be interrupted between its checkpoints, no caller and no repo ever has all threads: a part is always left
for somebody else, idle if there is nobody.

Threads also share the interpreter: libgit2 holds its lock while it parses a folder of 100,000 files, so nothing else
of the process runs for 80 ms. So a caller whose job used the processor for long rests before the next one starts.
"""

import contextlib
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, thread_time
from typing import Any, TypeVar

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import BACKGROUND, UNWATCHED, Caller, ClientLeft, caller_of_context
from hubgate.server.jobs.figures import figures_of
from hubgate.server.jobs.job import Job, too_late

T = TypeVar("T")

# Of one caller: more connections than any client opens wait here at once.
MOST_WAITING = 1_000
# Seconds of processor time after which no one rests: nearly all jobs use less.
UNPAID = 0.005


class FairPool:
    """Used by any number of event loops at once; `_lock` guards all that is counted."""

    def __init__(self, name: str, threads: int, *, per_caller: int, per_repo: int, rest: float = 0) -> None:
        """`rest`: for each second of processor time that a job used, its caller waits so many."""
        self.figures = figures_of(name)
        self._rest = rest
        # By caller: the moment at which the next job may start, and those for whom a timer runs.
        self._resting: dict[str, float] = {}
        self._woken: set[str] = set()
        self._threads, self._per_caller, self._per_repo = threads, per_caller, per_repo
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        # By caller, the one whose turn it is first.
        self._waiting: OrderedDict[str, deque[Job[Any]]] = OrderedDict()
        self._of_caller: Counter[str] = Counter()
        self._of_repo: Counter[str] = Counter()

    async def run(self, work: Callable[[], T], seconds: float, *, interruptible: bool) -> T:
        """`work` in a thread; Unavailable unless it has ended within `seconds`.

        Interruptible work may stop at any checkpoint, when its deadline has passed, its client has left or its task was
        cancelled. Other work may only fail to start: once it has begun it is waited for.
        """
        caller = caller_of_context.get()
        caller.check()
        job = Job(work, caller.share, caller.repo, seconds, interruptible=interruptible)
        watch = _Watch(self, job, caller, seconds)
        self._add(job)
        timer = job.loop.call_later(UNWATCHED, watch.begin)
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
            waiting = self._waiting.setdefault(job.caller, deque())
            if len(waiting) >= MOST_WAITING:
                raise Unavailable("Too many requests of yours are waiting. Try again.", retry_after=10)
            waiting.append(job)
            self.figures.queued += 1
            self._start_some()
        self.figures.changed(self.figures)

    def _drop(self, job: Job[Any]) -> bool:
        """Whether it was still waiting; then it never starts."""
        with self._lock:
            waiting = self._waiting.get(job.caller)
            if waiting is None or job not in waiting:
                return False
            waiting.remove(job)
            if not waiting:
                del self._waiting[job.caller]
            self.figures.queued -= 1
        self.figures.changed(self.figures)
        return True

    def stop(self, job: Job[Any], error: BaseException) -> None:
        """On the loop of the job: never start it or, if it may be interrupted, end it at its next checkpoint."""
        if job.future.done() or (not self._drop(job) and not job.interruptible):
            return
        if isinstance(error, ClientLeft):
            self.figures.abandoned += 1
        else:
            self.figures.expired += 1
        job.stop(error)
        self.figures.changed(self.figures)

    def _start_some(self) -> None:
        while self.figures.running < self._threads and (job := self._next()) is not None:
            self.figures.queued -= 1
            self.figures.running += 1
            self._of_caller[job.caller] += 1
            if job.repo is not None:
                self._of_repo[job.repo] += 1
            self._executor.submit(self._run, job)

    def _next(self) -> Job[Any] | None:
        """The first job, in the order of turns, whose caller and repo have room."""
        for caller, waiting in self._waiting.items():
            if self._of_caller[caller] >= self._per_caller or self._is_resting(caller, waiting[0]):
                continue
            job = next((job for job in waiting if job.repo is None or self._of_repo[job.repo] < self._per_repo), None)
            if job is None:
                continue
            waiting.remove(job)
            if waiting:
                self._waiting.move_to_end(caller)
            else:
                del self._waiting[caller]
            return job
        return None

    def _is_resting(self, caller: str, first: Job[Any]) -> bool:
        until = self._resting.get(caller)
        if until is None:
            return False
        left = until - monotonic()
        if left <= 0:
            del self._resting[caller]
            return False
        if caller not in self._woken:
            self._woken.add(caller)
            with contextlib.suppress(RuntimeError):
                first.loop.call_soon_threadsafe(first.loop.call_later, left, self._wake, caller)
        return True

    def _let_rest(self, caller: str, seconds: float) -> None:
        now = monotonic()
        if len(self._resting) >= MOST_WAITING:
            self._resting = {other: until for other, until in self._resting.items() if until > now}
        self._resting[caller] = max(self._resting.get(caller, 0), now) + seconds

    def _wake(self, caller: str) -> None:
        with self._lock:
            self._woken.discard(caller)
            self._start_some()
        self.figures.changed(self.figures)

    def _run(self, job: Job[Any]) -> None:
        began = thread_time()
        settle = job.run()
        used = thread_time() - began
        with self._lock:
            if used > UNPAID and self._rest and job.caller != BACKGROUND.share:
                self._let_rest(job.caller, used * self._rest)
            self.figures.running -= 1
            _less(self._of_caller, job.caller)
            if job.repo is not None:
                _less(self._of_repo, job.repo)
            self._start_some()
        self.figures.changed(self.figures)
        # The loop may have been closed while this ran.
        with contextlib.suppress(RuntimeError):
            job.loop.call_soon_threadsafe(settle)


class _Watch:
    """Looks after a job that did not end within a moment: for its deadline, and for its client."""

    def __init__(self, pool: FairPool, job: Job[Any], caller: Caller, seconds: float) -> None:
        self._pool, self._job, self._caller = pool, job, caller
        self._seconds = seconds
        self._deadline: Any = None

    def begin(self) -> None:
        self._caller.watch()
        self._deadline = self._job.loop.call_later(self._seconds - UNWATCHED, self._expire)

    def end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()

    def abandon(self) -> None:
        self._pool.stop(self._job, ClientLeft())

    def _expire(self) -> None:
        self._pool.stop(self._job, too_late())


def _less(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
