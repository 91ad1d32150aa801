"""How many attempts a process made in the last minute. No I/O."""

from collections import deque
from dataclasses import dataclass, field

SPAN_SECONDS = 60.0


@dataclass(eq=False)
class Throughput:
    # Of each second: the monotonic time, and the attempts.
    _seconds: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, attempts: int, moment: float) -> None:
        second = int(moment)
        if self._seconds and self._seconds[-1][0] == second:
            attempts += self._seconds.pop()[1]
        self._seconds.append((second, attempts))

    def last_minute(self, moment: float) -> int:
        while self._seconds and self._seconds[0][0] <= moment - SPAN_SECONDS:
            self._seconds.popleft()
        return sum(attempts for _, attempts in self._seconds)
