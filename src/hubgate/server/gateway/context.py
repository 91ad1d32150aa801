"""The dependencies of forwarded requests."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.gateway.upstream import Upstream
from hubgate.server.jobs.slots import Slots


class Gateway(Struct, frozen=True):
    # None if the operator has not configured the service.
    inference: Upstream | None
    jobs: Upstream | None
    # The issuer of signed identities.
    base_url: str
    clock: Clock
    # Signs claims with the hub's key ring and returns a JWT.
    sign: Callable[[Mapping[str, Any]], Awaitable[str]]
    # Seconds without a byte in either direction, after which the service counts as hanging.
    longest_silence: float
    # Seconds without progress in sending, after which the client counts as disconnected.
    longest_stall: float
    # Seconds between two checks of the permission while a request is forwarded.
    permission_interval: float
    # Limits the requests in flight: each uses two sockets, possibly for hours.
    slots: Slots
