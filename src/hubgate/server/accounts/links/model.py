"""What a mailed link is for, and how long it is good."""

from dataclasses import dataclass
from enum import Enum

from hubgate.server.clock import DAY, HOUR


class Purpose(Enum):
    VERIFY = "verify"
    CHANGE_EMAIL = "email"
    RESET = "reset"

    @property
    def lasts(self) -> int:
        return HOUR if self is Purpose.RESET else DAY


@dataclass(frozen=True, slots=True)
class Link:
    purpose: Purpose
    user_id: str
    # The address it proves.
    email: str
