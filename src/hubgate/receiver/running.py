"""Running a handler: `async def` on the loop, `def` in a thread, both knowing how deep the delivery is."""

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hubgate.depth import delivery_depth
from hubgate.receiver.answers import Answer, failed, raised, returned
from hubgate.receiver.calling import Delivery, Plan

MOST_THREADS = 40

logger = logging.getLogger("hubgate.receiver")


class Runner:
    """Threads of its own: handlers that block for minutes must not keep the loop's name look-ups waiting."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def run(self, plan: Plan, call: Callable[[], Any], delivery: Delivery) -> Answer:
        """`call` is the plan's, bound to the delivery. Never raises for what the handler does."""
        before = delivery_depth.set(delivery.request.depth)
        try:
            result = call() if plan.is_async else await self._in_thread(call)
            return returned(await result if inspect.isawaitable(result) else result)
        except Exception as error:
            answer = raised(error)
            if answer is None:
                logger.exception("%s failed on %s", delivery.path, delivery.request.delivery_id or "a delivery")
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


def _caught(call: Callable[[], Any]) -> tuple[BaseException | None, Any]:
    """A future cannot carry StopIteration, so errors travel as values."""
    try:
        return None, call()
    except BaseException as error:
        return error, None
