"""Runs handlers: `async def` on the event loop, `def` in a thread, both with the delivery's depth in their context.

A delivery that has been processed, or is being processed, does not run again.
"""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import Any

from hubgate.depth import delivery_depth
from hubgate.receiver.handlers import Delivery, Plan
from hubgate.receiver.log import printable
from hubgate.receiver.responses import HandlerResponse, error_response, response_for_exception

MAX_THREADS = 40
MAX_PROCESSED = 10_000

Key = tuple[str, str]

logger = logging.getLogger("hubgate.receiver")


class Runner:
    """Runs handlers. Blocking ones have their own thread pool, so that they do not delay the loop's DNS look-ups."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def run(
        self, plan: Plan, call: Callable[[], Any], delivery: Delivery, to_response: Callable[[object], HandlerResponse]
    ) -> HandlerResponse:
        """Run a handler. `call` is the bound handler; `to_response` converts its return value to a response.

        Exceptions of the handler are never raised: a handler that calls sys.exit must not stop the others.
        """
        outer_depth = delivery_depth.set(delivery.request.depth)
        try:
            result = call() if plan.is_async else await self._in_thread(call)
            return to_response(await result if inspect.isawaitable(result) else result)
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_task_cancelled():
                raise
            response = response_for_exception(error)
            if response is None:
                which = printable(delivery.request.delivery_id or "a delivery")
                logger.exception("The handler of %s failed for %s", delivery.path, which)
                response = error_response("The handler failed.")
            return response
        finally:
            delivery_depth.reset(outer_depth)

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MAX_THREADS, "hubgate-webhook")
        context = contextvars.copy_context()
        error, result = await asyncio.get_running_loop().run_in_executor(self._threads, context.run, _call_safely, call)
        if error is not None:
            raise error
        return result

    def close(self) -> None:
        """Stop accepting work. Handlers that are running in threads continue."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


class DeliveryState(Enum):
    NEW = auto()
    RUNNING = auto()
    DONE = auto()


class ProcessedDeliveries:
    """Processed deliveries by address and delivery id, in memory, to detect duplicates with `ack="after"`.

    Safe to use from several event loops in several threads.
    """

    def __init__(self, limit: int = MAX_PROCESSED) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._running: set[Key] = set()
        self._done: OrderedDict[Key, None] = OrderedDict()

    def begin(self, key: Key) -> DeliveryState:
        """NEW for the first caller, who must run the delivery; then RUNNING until `end`, and DONE after a success."""
        with self._lock:
            if key in self._running:
                return DeliveryState.RUNNING
            if key in self._done:
                return DeliveryState.DONE
            self._running.add(key)
            return DeliveryState.NEW

    def end(self, key: Key, *, succeeded: bool) -> None:
        """Record the outcome. A failed delivery is removed, so that it can run again."""
        with self._lock:
            self._running.discard(key)
            if succeeded:
                self._done[key] = None
                while len(self._done) > self._limit:
                    self._done.popitem(last=False)


def _is_task_cancelled() -> bool:
    """Whether this task was cancelled, and not something inside the handler."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _call_safely(call: Callable[[], Any]) -> tuple[BaseException | None, Any]:
    """Call the function and return its error as a value, because a future cannot carry StopIteration."""
    try:
        return None, call()
    except BaseException as error:
        return error, None
