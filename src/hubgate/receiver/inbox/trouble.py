"""Logs persistent errors once: one line when an error begins, none while it lasts."""

import logging

from hubgate.receiver.recent import plain

logger = logging.getLogger("hubgate.receiver")


class Trouble:
    def __init__(self, what: str) -> None:
        self._what, self._last_logged = what, ""

    def tell(self, error: Exception) -> None:
        if str(error) != self._last_logged:
            self._last_logged = str(error)
            logger.error("%s: %s", self._what, plain(self._last_logged))

    def is_over(self) -> None:
        """Reset, so that the next error is logged again."""
        self._last_logged = ""
