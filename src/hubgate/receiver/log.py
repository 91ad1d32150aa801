"""Log lines about untrusted input and lasting errors: sanitized, and at a limited rate."""

import logging

MAX_CHARACTERS = 100
# Anybody can send deliveries that are rejected; a flood of them must not flood the log.
QUIET_SECONDS = 1.0

logger = logging.getLogger("hubgate.receiver")


def printable(text: str) -> str:
    """Sanitize untrusted text for one line of a log or page: printable characters only, of limited length."""
    shown = "".join(character for character in text[: 2 * MAX_CHARACTERS] if character.isprintable())
    return shown if len(shown) <= MAX_CHARACTERS else shown[: MAX_CHARACTERS - 1] + "…"


class RejectionLog:
    """Logs rejected deliveries, at most one line per second."""

    def __init__(self) -> None:
        self._next_line_at = 0.0
        self._suppressed = 0

    def add(self, path: str, status: int, text: str, now: float) -> None:
        """Log a rejected delivery. `text` is also sent to the sender, so it contains no secret. `now` is monotonic."""
        if now < self._next_line_at:
            self._suppressed += 1
            return
        suppressed = f" ({self._suppressed} more since the previous line)" if self._suppressed else ""
        logger.warning("Rejected a delivery to %s with %d: %s%s", path, status, printable(text), suppressed)
        self._next_line_at, self._suppressed = now + QUIET_SECONDS, 0


class ErrorLog:
    """Logs a persistent error once, when it begins."""

    def __init__(self, summary: str) -> None:
        self._summary, self._last_logged = summary, ""

    def add(self, error: Exception) -> None:
        if str(error) != self._last_logged:
            self._last_logged = str(error)
            logger.error("%s: %s", self._summary, printable(self._last_logged))

    def reset(self) -> None:
        """Forget the last error, so that the next one is logged even if it has the same text."""
        self._last_logged = ""
