"""What the log says of deliveries that were not let in."""

import logging

from hubgate.receiver.recent import plain

# Anybody can send what is refused; a flood of it must not become one of the log.
QUIET_SECONDS = 1.0

logger = logging.getLogger("hubgate.receiver")


class Refusals:
    def __init__(self) -> None:
        self._next_line_at = 0.0
        self._untold = 0

    def tell(self, path: str, status: int, text: str, now: float) -> None:
        """`text` is what the sender is told too: nothing secret is in it. `now` is of a clock that never goes back."""
        if now < self._next_line_at:
            self._untold += 1
            return
        untold = f" ({self._untold} more since the line before)" if self._untold else ""
        logger.warning("Refused a delivery to %s with %d: %s%s", path, status, plain(text), untold)
        self._next_line_at, self._untold = now + QUIET_SECONDS, 0
