"""Which failures are worth another try, and when it is due. Pure.

Repeating is safe where nothing was done (no connection, 429), where doing it twice is as doing it once (RFC 9110,
section 9.2.2), and where the hub says that it did nothing (503 with Retry-After).
"""

from collections.abc import Callable
from datetime import UTC, datetime

from hubgate.client.errors import ConnectionLost, HubgateError, Unreachable
from hubgate.client.wire import Response

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
LONGEST_WAIT = 60.0
# The hub's word for a change whose fate it does not know itself.
OUTCOME_UNKNOWN = "OutcomeUnknown"

_FIRST, _MOST = 0.5, 8.0
_PASSING = frozenset({408, 500, 502, 503, 504})


def may_repeat_after_error(error: HubgateError, *, repeatable: bool) -> bool:
    if isinstance(error, Unreachable):
        return error.worth_retrying
    return repeatable and isinstance(error, ConnectionLost)


def may_repeat_after_answer(answer: Response, *, repeatable: bool) -> bool:
    if answer.status == 429:
        return True
    if answer.status == 503 and answer.headers.get("x-error-code") == OUTCOME_UNKNOWN:
        return repeatable
    if answer.status == 503 and "retry-after" in answer.headers:
        return True
    return repeatable and answer.status in _PASSING


def wait(tries: int, asked: float | None, jitter: Callable[[], float]) -> float | None:
    """Seconds until the next try after so many; None if the hub asks for more patience than a call has.

    What the hub asks for is the least: a little is added, so that all who were sent away do not come back at once.
    """
    backoff: float = min(_FIRST * 2.0 ** (tries - 1), _MOST)
    if asked is None:
        return backoff * (0.5 + jitter() / 2)
    if asked > LONGEST_WAIT:
        return None
    return asked + min(backoff, 1.0) * jitter()


def retry_after(header: str | None, now: float) -> float | None:
    """Seconds, from either form of the header (RFC 9110, section 10.2.3)."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    import email.utils

    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.fromtimestamp(now, UTC)).total_seconds(), 0.0)
