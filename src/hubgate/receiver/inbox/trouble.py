"""What the log says of a file that cannot be used: one line when that begins, none while it lasts."""

import logging

from hubgate.receiver.recent import plain

logger = logging.getLogger("hubgate.receiver")


class Trouble:
    def __init__(self, what: str) -> None:
        self._what, self._said = what, ""

    def tell(self, error: Exception) -> None:
        if str(error) != self._said:
            self._said = str(error)
            logger.error("%s: %s", self._what, plain(self._said))

    def is_over(self) -> None:
        """The next is told again."""
        self._said = ""
