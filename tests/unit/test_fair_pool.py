"""Threads shared by callers: turns, shares, deadlines, and clients that disconnect."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import ClientLeft, JobCaller, current_job_caller, while_client_waits
from hubgate.server.jobs.job import checkpoint
from hubgate.server.jobs.pool import FREE_CPU_SECONDS, FairPool

LONG = 60.0


class Gate:
    """Work that signals its start and ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.limit = 0
        self._running = 0
        self._lock = threading.Lock()
        self._opened = threading.Event()

    def work(self, name: str) -> Callable[[], str]:
        def work() -> str:
            with self._lock:
                self.begun.append(name)
                self._running += 1
                self.limit = max(self.limit, self._running)
            assert self._opened.wait(LONG)
            with self._lock:
                self._running -= 1
            return name

        return work

    def open(self) -> None:
        self._opened.set()


def begin(
    pool: FairPool,
    work: Callable[[], str],
    caller: JobCaller,
    seconds: float = LONG,
    *,
    interruptible: bool = True,
) -> "asyncio.Task[str]":
    async def run() -> str:
        current_job_caller.set(caller)
        return await pool.run(work, seconds, interruptible=interruptible)

    return asyncio.create_task(run())


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not is_so():
            await asyncio.sleep(0.001)


def endless() -> str:
    while True:
        checkpoint()


async def test_callers_take_turns() -> None:
    pool, gate = FairPool("test", 1, per_caller=1, per_repo=1), Gate()
    greedy = [begin(pool, gate.work(f"greedy {number}"), JobCaller("greedy")) for number in range(20)]
    await until(lambda: len(gate.begun) == 1)
    other = begin(pool, gate.work("other"), JobCaller("other"))
    await until(lambda: pool.metrics.queued == 20)
    gate.open()
    await asyncio.gather(*greedy, other)
    assert gate.begun.index("other") <= 2
    assert [name for name in gate.begun if name != "other"] == [f"greedy {number}" for number in range(20)]


async def test_one_caller_never_has_all_threads() -> None:
    pool, gate = FairPool("test", 3, per_caller=1, per_repo=3), Gate()
    greedy = [begin(pool, gate.work("greedy"), JobCaller("greedy")) for _ in range(10)]
    await until(lambda: pool.metrics.queued == 9)
    others = [begin(pool, gate.work(name), JobCaller(name)) for name in ("one", "two")]
    await until(lambda: len(gate.begun) == 3)
    assert sorted(gate.begun) == ["greedy", "one", "two"]
    gate.open()
    await asyncio.gather(*greedy, *others)
    assert pool.metrics.running == pool.metrics.queued == 0


async def test_one_repo_never_has_all_threads() -> None:
    pool, gate = FairPool("test", 3, per_caller=3, per_repo=2), Gate()

    def of(repo: str, name: str) -> JobCaller:
        caller = JobCaller(name)
        caller.repo = repo
        return caller

    popular = [begin(pool, gate.work("popular"), of("popular", str(number))) for number in range(6)]
    await until(lambda: len(gate.begun) == 2)
    quiet = begin(pool, gate.work("quiet"), of("quiet", "reader"))
    await until(lambda: len(gate.begun) == 3)
    assert gate.begun == ["popular", "popular", "quiet"]
    gate.open()
    await asyncio.gather(*popular, quiet)


def burn() -> str:
    """Uses more processor time than is free."""
    until = time.thread_time() + 2 * FREE_CPU_SECONDS
    while time.thread_time() < until:
        pass
    return "burnt"


async def test_caller_rests_after_expensive_work_and_others_do_not() -> None:
    pool = FairPool("test", 2, per_caller=2, per_repo=2, rest=1_000_000)
    greedy = JobCaller("greedy")
    assert await begin(pool, burn, greedy) == "burnt"
    waiting = begin(pool, lambda: "again", greedy)
    for _ in range(5):
        assert await begin(pool, lambda: "other", JobCaller("other")) == "other"
    assert (waiting.done(), pool.metrics.queued) == (False, 1)
    waiting.cancel()


async def test_caller_continues_after_resting() -> None:
    pool = FairPool("test", 1, per_caller=1, per_repo=1, rest=2)
    greedy = JobCaller("greedy")
    both = [begin(pool, burn, greedy), begin(pool, lambda: "again", greedy)]
    assert await asyncio.gather(*both) == ["burnt", "again"]
    cheap = FairPool("test", 1, per_caller=1, per_repo=1, rest=1_000_000)
    assert [await begin(cheap, lambda: "cheap", greedy) for _ in range(3)] == ["cheap"] * 3


async def test_disconnected_clients_work_is_stopped_and_no_more_started() -> None:
    pool, left = FairPool("test", 1, per_caller=1, per_repo=1), asyncio.Event()
    caller, begun = JobCaller("reader", may_abandon=True), []
    caller.detect_disconnect_with(left.wait)

    def never() -> str:
        begun.append("never")
        return ""

    running, waiting = begin(pool, endless, caller), begin(pool, never, caller)
    await until(lambda: (pool.metrics.running, pool.metrics.queued) == (1, 1))
    left.set()
    for task in (running, waiting):
        with pytest.raises(ClientLeft):
            await task
    with pytest.raises(ClientLeft):
        await begin(pool, never, caller)
    await until(lambda: pool.metrics.running == 0)
    assert not begun
    assert pool.metrics.abandoned == 2
    assert await begin(pool, lambda: "others are served", JobCaller("other")) == "others are served"


async def test_request_that_changes_something_outlives_its_client() -> None:
    pool, gate, left = FairPool("test", 1, per_caller=1, per_repo=1), Gate(), asyncio.Event()
    caller = JobCaller("writer")
    caller.detect_disconnect_with(left.wait)
    left.set()
    writing = begin(pool, gate.work("written"), caller, interruptible=False)
    await until(lambda: len(gate.begun) == 1)
    gate.open()
    assert await writing == "written"


async def test_uninterruptible_work_is_waited_for() -> None:
    pool, gate = FairPool("test", 1, per_caller=1, per_repo=1), Gate()
    begun = begin(pool, gate.work("begun"), JobCaller("one"), 0.001, interruptible=False)
    await until(lambda: len(gate.begun) == 1)
    with pytest.raises(Unavailable):
        await begin(pool, gate.work("too late"), JobCaller("two"), 0.001, interruptible=False)
    gate.open()
    assert await begun == "begun"
    assert gate.begun == ["begun"]
    assert pool.metrics.expired == 1


async def test_deadline_ends_work_at_a_checkpoint() -> None:
    pool = FairPool("test", 1, per_caller=1, per_repo=1)
    with pytest.raises(Unavailable) as refusal:
        await begin(pool, endless, JobCaller("one"), 0.1)
    assert refusal.value.retry_after
    await until(lambda: pool.metrics.running == 0)


async def test_cancelled_task_leaves_the_queue() -> None:
    pool, gate = FairPool("test", 1, per_caller=1, per_repo=1), Gate()
    running = begin(pool, gate.work("running"), JobCaller("one"))
    await until(lambda: len(gate.begun) == 1)
    cancelled = begin(pool, gate.work("cancelled"), JobCaller("two"))
    await until(lambda: pool.metrics.queued == 1)
    cancelled.cancel()
    await until(lambda: pool.metrics.queued == 0)
    gate.open()
    await running
    assert gate.begun == ["running"]


async def test_exception_of_the_work_is_raised_to_its_caller() -> None:
    pool = FairPool("test", 1, per_caller=1, per_repo=1)
    for error in (ValueError("no"), KeyError("no")):
        with pytest.raises(type(error)):
            await begin(pool, _raising(error), JobCaller("one"))
    with pytest.raises(RuntimeError):
        await begin(pool, _raising(StopIteration()), JobCaller("one"))
    assert pool.metrics.running == 0


def _raising(error: Exception) -> Callable[[], str]:
    def work() -> str:
        raise error

    return work


async def test_waiting_for_a_program_ends_with_its_client_or_its_deadline() -> None:
    left, ended = asyncio.Event(), []
    caller = JobCaller("reader", may_abandon=True)
    caller.detect_disconnect_with(left.wait)

    async def program() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def run(seconds: float) -> None:
        current_job_caller.set(caller)
        await while_client_waits(program(), seconds)

    with pytest.raises(Unavailable):
        await asyncio.create_task(run(0.01))
    task = asyncio.create_task(run(LONG))
    await asyncio.sleep(0)
    left.set()
    with pytest.raises(ClientLeft):
        await task
    assert len(ended) == 2
