"""Identifiers: 24 lower-case hex characters, ordered by the second of their making."""

import re
import secrets

from hubgate.server.clock import SECOND

# Comes after every id, for lists that begin with the newest.
AFTER_ALL = "g"

_OBJECT_ID = re.compile(r"[0-9a-f]{24}\Z")


def new_id(now: int) -> str:
    """Four bytes of seconds, then eight random ones: unique without asking the database."""
    return f"{now // SECOND & 0xFFFFFFFF:08x}{secrets.token_hex(8)}"


def is_id(text: str) -> bool:
    return _OBJECT_ID.match(text) is not None
