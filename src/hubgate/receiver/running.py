"""Runs handlers: `async def` on the event loop, `def` in a thread, both with the delivery's depth in their context."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hubgate.depth import delivery_depth
from hubgate.receiver.answers import Answer, failed, raised
from hubgate.receiver.calling import Delivery, Plan
from hubgate.receiver.recent import plain

MOST_THREADS = 40

logger = logging.getLogger("hubgate.receiver")


class Runner:
    """Runs handlers in separate threads: handlers that block for minutes must not delay the loop's DNS look-ups."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def run(
        self, plan: Plan, call: Callable[[], Any], delivery: Delivery, answered: Callable[[object], Answer]
    ) -> Answer:
        """Run a handler. `call` is the bound handler; `answered` converts its return value to a response.

        Exceptions of the handler are never raised: a handler that calls sys.exit must not stop the others.
        """
        before = delivery_depth.set(delivery.request.depth)
        try:
            result = call() if plan.is_async else await self._in_thread(call)
            return answered(await result if inspect.isawaitable(result) else result)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _cancelled():
                raise
            answer = raised(error)
            if answer is None:
                which = plain(delivery.request.delivery_id or "a delivery")
                logger.exception("%s failed on %s", delivery.path, which)
                answer = failed("The handler failed.")
            return answer
        finally:
            delivery_depth.reset(before)

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_THREADS, "hubgate-webhook")
        context = contextvars.copy_context()
        error, result = await asyncio.get_running_loop().run_in_executor(self._threads, context.run, _caught, call)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Stop accepting work. Handlers that are running in threads continue."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _cancelled() -> bool:
    """Whether this task was cancelled, and not something inside the handler."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _caught(call: Callable[[], Any]) -> tuple[BaseException | None, Any]:
    """Call and return the error as a value, because a future cannot carry StopIteration."""
    try:
        return None, call()
    except BaseException as error:
        return error, None
