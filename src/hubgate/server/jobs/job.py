"""One piece of work in a thread, with its deadline, and the checkpoints at which it can be stopped."""

import asyncio
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, TypeVar

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import TOO_LONG, ClientLeft

T = TypeVar("T")


class JobStopped(BaseException):
    """Raised by `checkpoint`. Not an Exception: code that forgives whatever a library raises must not forgive this."""


class Job(Generic[T]):
    """Started at most once. `stop` is called on the loop that awaits `future`; the thread sees it at a checkpoint, if
    the job may be interrupted.
    """

    __slots__ = ("caller", "deadline", "future", "interruptible", "is_stopped", "loop", "repo", "work")

    def __init__(
        self, work: Callable[[], T], caller: str, repo: str | None, seconds: float, *, interruptible: bool
    ) -> None:
        self.work = work
        self.interruptible = interruptible
        self.caller = caller
        self.repo = repo
        self.deadline = monotonic() + seconds
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()
        self.is_stopped = False

    @property
    def is_late(self) -> bool:
        return monotonic() > self.deadline

    def stop(self, error: BaseException) -> None:
        """Whoever awaits it gets `error` now."""
        self.is_stopped = True
        if not self.future.done():
            self.future.set_exception(error)

    def run(self) -> Callable[[], None]:
        """In a thread. What has to be done on the loop with the outcome."""
        _here.job = self
        try:
            result = self.work()
        except JobStopped:
            return self._stopped
        except StopIteration as error:
            # A future does not take one.
            return self._failing(RuntimeError(str(error)))
        except BaseException as error:
            return self._failing(error)
        finally:
            _here.job = None
        return lambda: None if self.future.done() else self.future.set_result(result)

    def _stopped(self) -> None:
        if not self.future.done():
            self.future.set_exception(too_late() if self.is_late else ClientLeft())

    def _failing(self, error: BaseException) -> Callable[[], None]:
        return lambda: None if self.future.done() else self.future.set_exception(error)


class _Here(threading.local):
    job: Job[Any] | None = None


_here = _Here()


def checkpoint() -> None:
    """For loops inside a job. Returns at once unless the job is no longer wanted; outside of a job it does nothing."""
    job = _here.job
    if job is not None and job.interruptible and (job.is_stopped or job.is_late):
        raise JobStopped


def too_late() -> Unavailable:
    return Unavailable(TOO_LONG, retry_after=30)
