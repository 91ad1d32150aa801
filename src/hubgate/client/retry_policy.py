"""Decides which failures are retried, and after how long. No I/O.

A retry is safe if the request was not processed (no connection, 429), if it is idempotent (RFC 9110, section 9.2.2), or
if the hub says that it did nothing (503 with Retry-After).
"""

from collections.abc import Callable
from datetime import UTC, datetime

from hubgate.client.errors import ConnectionLost, HubgateError, Unreachable
from hubgate.client.wire import Response

IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS"})
MAX_WAIT_SECONDS = 60.0
# The error code for a change whose outcome the hub does not know.
OUTCOME_UNKNOWN = "OutcomeUnknown"

_FIRST_DELAY, _MAX_DELAY = 0.5, 8.0
_TRANSIENT = frozenset({408, 500, 502, 503, 504})


def may_repeat_after_error(error: HubgateError, *, repeatable: bool) -> bool:
    if isinstance(error, Unreachable):
        return error.worth_retrying
    return repeatable and isinstance(error, ConnectionLost)


def may_repeat_after_response(response: Response, *, repeatable: bool) -> bool:
    if response.status == 429:
        return True
    if response.status == 503 and response.headers.get("x-error-code") == OUTCOME_UNKNOWN:
        return repeatable
    if response.status == 503 and "retry-after" in response.headers:
        return True
    return repeatable and response.status in _TRANSIENT


def retry_delay(tries: int, requested: float | None, jitter: Callable[[], float]) -> float | None:
    """Seconds to wait before the next try; None if the hub asks for more than MAX_WAIT_SECONDS.

    Jitter is added to the time that the hub asks for, so that rejected clients do not all return at once.
    """
    backoff: float = min(_FIRST_DELAY * 2.0 ** (tries - 1), _MAX_DELAY)
    if requested is None:
        return backoff * (0.5 + jitter() / 2)
    if requested > MAX_WAIT_SECONDS:
        return None
    return requested + min(backoff, 1.0) * jitter()


def retry_after(header: str | None, now: float) -> float | None:
    """The seconds in a Retry-After header, from either of its formats (RFC 9110, section 10.2.3)."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    import email.utils

    try:
        time = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return max((time - datetime.fromtimestamp(now, UTC)).total_seconds(), 0.0)
