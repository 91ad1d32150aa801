"""Identifiers of rows, which sort by creation time to the microsecond, and of requests.

They are unique and not secret: their random bits come from a generator that was seeded once in each process, because a
system call for each of them takes longer. Tokens, codes and the ids of links come from `secrets`.
"""

import os
import random
import re

from hubgate.server.clock import SECOND

# Sorts after every id: the start key of lists that show the newest first.
AFTER_ALL = "g"

_random = random.Random(os.urandom(32))  # noqa: S311
# Otherwise a forked process would repeat the ids of its parent.
os.register_at_fork(after_in_child=lambda: _random.seed(os.urandom(32)))

_OBJECT_ID = re.compile(r"[0-9a-f]{24}\Z")


def new_id(now: int) -> str:
    """A new id: 24 lower-case hex characters, of 32 bits of seconds, 20 bits of microseconds and 44 random bits. Unique
    without a database query.
    """
    return f"{id_prefix(now)}{_random.getrandbits(44):011x}"


def new_request_id() -> str:
    return f"{_random.getrandbits(128):032x}"


def id_prefix(moment: int) -> str:
    """The beginning of all ids that were created in this microsecond."""
    return f"{moment // SECOND & 0xFFFFFFFF:08x}{moment % SECOND:05x}"


def first_id(at: int) -> str:
    """Less than or equal to every id that is created at this time or later."""
    return f"{at // SECOND & 0xFFFFFFFF:08x}{at % SECOND:05x}"


def is_id(text: str) -> bool:
    return _OBJECT_ID.match(text) is not None
