"""Mailed links: purpose, lifetime and address."""

from enum import Enum

from msgspec import Struct

from hubgate.server.clock import DAY, HOUR


class Purpose(Enum):
    VERIFY = "verify"
    CHANGE_EMAIL = "email"
    RESET = "reset"

    @property
    def lifetime(self) -> int:
        return HOUR if self is Purpose.RESET else DAY


class Link(Struct, frozen=True):
    purpose: Purpose
    user_id: str
    # The address that the link was sent to. Using the link proves control of it.
    email: str
