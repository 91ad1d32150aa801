"""Times that users and clients send: ISO 8601, in UTC unless an offset is given.

A time covers the whole of its smallest given unit: `until` 10:05 includes all of that minute. Pages and responses show
truncated times, so a time copied from them includes the event that it was copied from.
"""

import re
from datetime import UTC, datetime, timedelta

from hubgate.server.clock import DAY, MINUTE, SECOND
from hubgate.server.errors import Unprocessable

_PATTERN = re.compile(r"\d{4}-\d\d-\d\d(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_instant(text: str) -> int:
    """Return the first microsecond of the time, since the epoch."""
    return _parse(text)[0]


def last_instant(text: str) -> int:
    """Return the last microsecond of the time, since the epoch."""
    start, unit = _parse(text)
    return start + unit - 1


def _parse(text: str) -> tuple[int, int]:
    """Return the start of the time and the length of its smallest given unit, both in microseconds."""
    error = Unprocessable(f"{text[:40]} is not a time such as 2026-09-21T14:13:20Z.")
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise error
    try:
        when = datetime.fromisoformat(match.group())
    except ValueError:
        raise error from None
    since_epoch = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    minute, second, fraction = match.groups()
    if fraction:
        unit = 10 ** (6 - len(fraction))
    elif second:
        unit = SECOND
    else:
        unit = MINUTE if minute else DAY
    return since_epoch // timedelta(microseconds=1), unit
