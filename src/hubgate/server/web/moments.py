"""Times that people and programs send: ISO 8601, in UTC unless they say otherwise.

As precise as they are written: a span until 10:05 has all of that minute in it, so that whoever copies a time from a
page or an answer, where it is cut short, means what is shown there.
"""

import re
from datetime import UTC, datetime, timedelta

from hubgate.server.clock import DAY, MINUTE, SECOND
from hubgate.server.errors import Unprocessable

_SHAPE = re.compile(r"\d{4}-\d\d-\d\d(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def first_moment(text: str) -> int:
    return _parsed(text)[0]


def last_moment(text: str) -> int:
    moment, unit = _parsed(text)
    return moment + unit - 1


def _parsed(text: str) -> tuple[int, int]:
    """The moment, and how long the smallest unit is that was written down."""
    refusal = Unprocessable(f"{text[:40]} is no time such as 2026-09-21T14:13:20Z.")
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise refusal
    try:
        when = datetime.fromisoformat(shape.group())
    except ValueError:
        raise refusal from None
    since_epoch = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    minute, second, fraction = shape.groups()
    if fraction:
        unit = 10 ** (6 - len(fraction))
    elif second:
        unit = SECOND
    else:
        unit = MINUTE if minute else DAY
    return since_epoch // timedelta(microseconds=1), unit
