"""Running a handler: `async def` on the loop, `def` in a thread, both knowing how deep the delivery is."""

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
    """Threads of its own: handlers that block for minutes must not keep the loop's name look-ups waiting."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def run(
        self, plan: Plan, call: Callable[[], Any], delivery: Delivery, answered: Callable[[object], Answer]
    ) -> Answer:
        """`call` is the plan's, bound to the delivery; `answered` makes an answer of what it returned.

        Never raises for what the handler does: one that calls sys.exit must not take the others down.
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
        """What still runs in a thread runs on; nothing new begins."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


def _cancelled() -> bool:
    """Whether it is this task that shall end, and not something of the handler's that was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _caught(call: Callable[[], Any]) -> tuple[BaseException | None, Any]:
    """A future cannot carry StopIteration, so errors travel as values."""
    try:
        return None, call()
    except BaseException as error:
        return error, None
