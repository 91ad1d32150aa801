"""A limit on downloads that the hub reads from the store of large content.

Each occupies a connection to the store until its client has read everything, and the pool has 512 of them in a process
(`objects/s3/transport.py`). Without a limit, one slow reader of many files would leave none for uploads and others.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hubgate.server.access.caller import share_key_of
from hubgate.server.http.request import HubRequest
from hubgate.server.jobs.slots import Slots

# An existing client reads 64 ranges of a file at once.
_SLOTS = Slots(384, 128, "Too many downloads at once. Try again.")


async def in_turn(request: HubRequest, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The parts, once there is a slot, which is occupied until the last one."""
    async with aclosing(parts), _SLOTS.acquire(share_key_of(request)):
        async for part in parts:
            yield part
