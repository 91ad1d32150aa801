"""On whose behalf work is done: one caller for each request, and one for everything a process does by itself.

The edge puts it into the context, so that none of the places that start a job has to pass it on. Whether the client is
still there is not watched until a job takes longer than a moment: most requests never pay for it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from hubgate.server.errors import Unavailable

T = TypeVar("T")

# Seconds. A job that ends sooner costs a timer and no more.
UNWATCHED = 0.05

TOO_LONG = "This takes too long. Ask for less at once, or try again later."


class ClientLeft(Exception):
    """Nobody waits for the answer any more."""


class Waiting(Protocol):
    """Something that a caller waits for."""

    def abandon(self) -> None:
        """The client is gone: stop, and raise ClientLeft to whoever awaits it."""


class Caller:
    """`share` is whose part of the threads and programs is used: a user's id or a client's address.

    Belongs to one event loop. `may_abandon` is set for requests that change nothing: what they wait for is dropped when
    their client leaves. Everything else runs to its end, because it may be half of something.
    """

    __slots__ = ("_departure", "_watching", "has_left", "may_abandon", "repo", "share", "waiting")

    def __init__(self, share: str, *, may_abandon: bool = False) -> None:
        self.share = share
        self.repo: str | None = None
        self.may_abandon = may_abandon
        self.has_left = False
        self.waiting: set[Waiting] = set()
        self._departure: Callable[[], Coroutine[Any, Any, Any]] | None = None
        self._watching: asyncio.Task[None] | None = None

    def leaves_when(self, departure: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """`departure` returns once the client is gone; it must not take any part of a body."""
        self._departure = departure

    def check(self) -> None:
        """Nothing is begun for a client that is gone."""
        if self.has_left and self.may_abandon:
            raise ClientLeft

    def watch(self) -> None:
        """From now on what is in `waiting` is abandoned when the client leaves."""
        if self._watching is None and self.may_abandon and self._departure is not None:
            self._watching = asyncio.ensure_future(self._watch(self._departure))

    async def _watch(self, departure: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        await departure()
        self.has_left = True
        for waiting in list(self.waiting):
            waiting.abandon()

    def close(self) -> None:
        """The request has been answered."""
        if self._watching is not None:
            self._watching.cancel()


# What a process does by itself has one share, as any caller has.
BACKGROUND = Caller("background")

caller_of_context: ContextVar[Caller] = ContextVar("caller", default=BACKGROUND)


@contextlib.contextmanager
def as_background() -> Iterator[None]:
    """For a step that others wait for too: it does not queue behind what else its caller asked for."""
    token = caller_of_context.set(BACKGROUND)
    try:
        yield
    finally:
        caller_of_context.reset(token)


def charge_repo(repo_id: str) -> None:
    """Once it is known which repo a request is about."""
    caller = caller_of_context.get()
    if caller is not BACKGROUND:
        caller.repo = repo_id


def only_reads() -> None:
    """For a POST that changes nothing: it too is dropped when its client leaves."""
    caller = caller_of_context.get()
    if caller is not BACKGROUND:
        caller.may_abandon = True


class _Awaited:
    def __init__(self, task: "asyncio.Future[Any]") -> None:
        self.task, self.is_abandoned = task, False

    def abandon(self) -> None:
        self.is_abandoned = True
        self.task.cancel()


async def while_wanted(work: Awaitable[T], seconds: float) -> T:
    """The result of `work`, which is cancelled when `seconds` have passed (Unavailable) or its client has left."""
    caller = caller_of_context.get()
    task = asyncio.ensure_future(work)
    awaited = _Awaited(task)
    caller.waiting.add(awaited)
    timer = asyncio.get_running_loop().call_later(UNWATCHED, caller.watch)
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
