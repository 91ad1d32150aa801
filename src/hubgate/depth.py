"""The depth of a delivery: how many deliveries led to the current request. Shared by the client and the receiver.

The receiver sets the depth while a handler runs, and the client sends it with each request, so that the hub can stop a
receiver that reacts to its own changes.
"""

from contextvars import ContextVar

HEADER = "X-Hubgate-Depth"

# None outside a handler. A new thread needs a copy of the context; `asyncio.to_thread` creates one.
delivery_depth: ContextVar[int | None] = ContextVar("hubgate_delivery_depth", default=None)
