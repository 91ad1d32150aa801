"""How many requests may be in the air to one IP address, whatever the name, the port and whose they are.

A thousand webhooks of a hundred users that all point at one victim make no flood of it (attack W29). Each process
counts its own.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from hubgate.server.egress.addresses import Address, embedded_in

PER_ADDRESS = 64


class Rooms:
    def __init__(self) -> None:
        self._taken: Counter[Address | None] = Counter()

    @contextmanager
    def entered(self, address: Address) -> Iterator[bool]:
        """Whether there is room; it is held until the block ends. Spellings of one address share it."""
        reached = embedded_in(address)
        if self._taken[reached] >= PER_ADDRESS:
            yield False
            return
        self._taken[reached] += 1
        try:
            yield True
        finally:
            self._taken[reached] -= 1
            if not self._taken[reached]:
                del self._taken[reached]
