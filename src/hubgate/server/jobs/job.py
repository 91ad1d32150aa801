"""A job that runs in a thread, with its deadline and the checkpoints at which it can be stopped."""

import asyncio
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, TypeVar

from hubgate.server.errors import Unavailable
from hubgate.server.jobs.caller import TOO_LONG, ClientLeft

T = TypeVar("T")


class JobStopped(BaseException):
    """Raised by `checkpoint`. Not an Exception, so that `except Exception` around library calls does not swallow it."""


class Job(Generic[T]):
    """A job that is started at most once.

    `stop` is called on the loop that awaits `future`; an interruptible job notices at its next checkpoint.
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
        """Raise `error` in the awaiting task at once."""
        self.is_stopped = True
        if not self.future.done():
            self.future.set_exception(error)

    def run(self) -> Callable[[], None]:
        """Run the work in a thread. Returns a callback that sets the result, to be called on the loop."""
        _current.job = self
        try:
            result = self.work()
        except JobStopped:
            return self._fail_stopped
        except StopIteration as error:
            # A future rejects StopIteration.
            return self._fail_with(RuntimeError(str(error)))
        except BaseException as error:
            return self._fail_with(error)
        finally:
            _current.job = None
        return lambda: None if self.future.done() else self.future.set_result(result)

    def _fail_stopped(self) -> None:
        if not self.future.done():
            self.future.set_exception(deadline_exceeded() if self.is_late else ClientLeft())

    def _fail_with(self, error: BaseException) -> Callable[[], None]:
        return lambda: None if self.future.done() else self.future.set_exception(error)


class _CurrentJob(threading.local):
    job: Job[Any] | None = None


_current = _CurrentJob()


def checkpoint() -> None:
    """Raise JobStopped if the current job was stopped or is late. Called in loops; does nothing outside a job."""
    job = _current.job
    if job is not None and job.interruptible and (job.is_stopped or job.is_late):
        raise JobStopped


def deadline_exceeded() -> Unavailable:
    return Unavailable(TOO_LONG, retry_after=30)
