"""Identifiers: 24 lower-case hex characters that sort by creation time, to the microsecond."""

import re
import secrets

from hubgate.server.clock import SECOND

# Sorts after every id: the start key of lists that show the newest first.
AFTER_ALL = "g"

_OBJECT_ID = re.compile(r"[0-9a-f]{24}\Z")


def new_id(now: int) -> str:
    """A new id: 32 bits of seconds, 20 bits of microseconds, 44 random bits. Unique without a database query."""
    return f"{id_prefix(now)}{secrets.randbits(44):011x}"


def id_prefix(moment: int) -> str:
    """The beginning of all ids that were created in this microsecond."""
    return f"{moment // SECOND & 0xFFFFFFFF:08x}{moment % SECOND:05x}"


def first_id(at: int) -> str:
    """Less than or equal to every id that is created at this time or later."""
    return f"{at // SECOND & 0xFFFFFFFF:08x}{at % SECOND:05x}"


def is_id(text: str) -> bool:
    return _OBJECT_ID.match(text) is not None
