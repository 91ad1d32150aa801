"""How many deliveries led to what is being done: the one thing that client and receiver share.

The receiver sets it while a handler runs; the client then sends it along, so that a receiver that changes what it
watches cannot go in circles.
"""

from contextvars import ContextVar

HEADER = "X-Hubgate-Depth"

# Of the delivery at hand; None outside a handler. Threads need a copy of the context (`asyncio.to_thread` makes one).
delivery_depth: ContextVar[int | None] = ContextVar("hubgate_delivery_depth", default=None)
