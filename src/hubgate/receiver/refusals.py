"""Logs rejected deliveries, at a limited rate."""

import logging

from hubgate.receiver.recent import plain

# Anybody can send deliveries that are rejected; a flood of them must not flood the log.
QUIET_SECONDS = 1.0

logger = logging.getLogger("hubgate.receiver")


class Refusals:
    def __init__(self) -> None:
        self._next_line_at = 0.0
        self._suppressed = 0

    def tell(self, path: str, status: int, text: str, now: float) -> None:
        """Log a rejected delivery. `text` is also sent to the sender, so it contains no secret. `now` is monotonic."""
        if now < self._next_line_at:
            self._suppressed += 1
            return
        suppressed = f" ({self._suppressed} more since the line before)" if self._suppressed else ""
        logger.warning("Refused a delivery to %s with %d: %s%s", path, status, plain(text), suppressed)
        self._next_line_at, self._suppressed = now + QUIET_SECONDS, 0
