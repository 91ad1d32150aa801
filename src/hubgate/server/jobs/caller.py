"""The caller a job is charged to: one for each request, and one for all background work of a process.

The edge sets a context variable, so code that starts a job does not pass the caller on. The hub watches for a
client disconnect only once a job runs longer than WATCH_AFTER_SECONDS, so most requests do not pay for the watch.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from hubgate.server.errors import Unavailable

T = TypeVar("T")

# Shorter jobs cost only a timer.
WATCH_AFTER_SECONDS = 0.05

TOO_LONG = "This takes too long. Ask for less at once, or try again later."


class ClientLeft(Exception):
    """The client disconnected before the response was ready."""


class Abandonable(Protocol):
    """A job or slot that a caller waits for."""

    def abandon(self) -> None:
        """Stop because the client disconnected, and raise ClientLeft in the awaiting task."""


class JobCaller:
    """The user or client that jobs are charged to. `share_key`, for fair sharing, is a user id or a client address.

    A caller belongs to one event loop. `may_abandon` is set for read-only requests: their jobs are dropped when the
    client disconnects. Other requests run to completion, because stopping could leave a change half done.
    """

    __slots__ = ("_disconnect", "_watch_task", "has_left", "may_abandon", "repo", "share_key", "waiting")

    def __init__(self, share_key: str, *, may_abandon: bool = False) -> None:
        self.share_key = share_key
        self.repo: str | None = None
        self.may_abandon = may_abandon
        self.has_left = False
        self.waiting: set[Abandonable] = set()
        self._disconnect: Callable[[], Coroutine[Any, Any, Any]] | None = None
        self._watch_task: asyncio.Task[None] | None = None

    def detect_disconnect_with(self, disconnect: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Set the coroutine that returns once the client has disconnected. `disconnect` must not consume the body."""
        self._disconnect = disconnect

    def check(self) -> None:
        """Raise ClientLeft if the client of a read-only request has disconnected."""
        if self.has_left and self.may_abandon:
            raise ClientLeft

    def watch(self) -> None:
        """Start watching the client: on disconnect, everything in `waiting` is abandoned."""
        if self._watch_task is None and self.may_abandon and self._disconnect is not None:
            self._watch_task = asyncio.ensure_future(self._watch(self._disconnect))

    async def _watch(self, disconnect: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        await disconnect()
        self.has_left = True
        for waiting in list(self.waiting):
            waiting.abandon()

    def close(self) -> None:
        """Stop watching the client: the request is finished."""
        if self._watch_task is not None:
            self._watch_task.cancel()


# All background work of a process counts as one caller.
BACKGROUND = JobCaller("background")

current_job_caller: ContextVar[JobCaller] = ContextVar("caller", default=BACKGROUND)


@contextlib.contextmanager
def as_background() -> Iterator[None]:
    """Charge jobs to BACKGROUND, so that a step that other callers wait for is not queued behind this caller's jobs."""
    token = current_job_caller.set(BACKGROUND)
    try:
        yield
    finally:
        current_job_caller.reset(token)


def charge_repo(repo_id: str) -> None:
    """Set the repo that further jobs of this request are charged to."""
    caller = current_job_caller.get()
    if caller is not BACKGROUND:
        caller.repo = repo_id


def mark_read_only() -> None:
    """Mark a POST as read-only, so that its jobs are dropped when the client disconnects."""
    caller = current_job_caller.get()
    if caller is not BACKGROUND:
        caller.may_abandon = True


class _AwaitedTask:
    def __init__(self, task: "asyncio.Future[Any]") -> None:
        self.task, self.is_abandoned = task, False

    def abandon(self) -> None:
        self.is_abandoned = True
        self.task.cancel()


async def while_client_waits(work: Awaitable[T], seconds: float) -> T:
    """Return the result of `work`. Cancels it after `seconds` (Unavailable) or on client disconnect (ClientLeft)."""
    caller = current_job_caller.get()
    task = asyncio.ensure_future(work)
    awaited = _AwaitedTask(task)
    caller.waiting.add(awaited)
    timer = asyncio.get_running_loop().call_later(WATCH_AFTER_SECONDS, caller.watch)
    try:
        caller.check()
        async with asyncio.timeout(seconds):
            return await task
    except TimeoutError:
        raise Unavailable(TOO_LONG, retry_after=30) from None
    except asyncio.CancelledError:
        if awaited.is_abandoned:
            raise ClientLeft from None
        raise
    finally:
        timer.cancel()
        caller.waiting.discard(awaited)
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
