"""Mailed links: purpose, lifetime and address."""

from dataclasses import dataclass
from enum import Enum

from hubgate.server.clock import DAY, HOUR


class Purpose(Enum):
    VERIFY = "verify"
    CHANGE_EMAIL = "email"
    RESET = "reset"

    @property
    def lifetime(self) -> int:
        return HOUR if self is Purpose.RESET else DAY


@dataclass(frozen=True, slots=True)
class Link:
    purpose: Purpose
    user_id: str
    # The address that the link proves.
    email: str
