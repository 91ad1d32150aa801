"""A frozen clock that only a test advances."""

from dataclasses import dataclass

from hubgate.server.clock import SECOND

START = 1_790_000_000 * SECOND


@dataclass
class FrozenClock:
    now: int = START

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
