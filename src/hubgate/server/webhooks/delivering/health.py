"""The health of a webhook from one attempt to the next. No I/O."""

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.webhooks.model import BREAKER_FIRST, BREAKER_LONGEST, BREAKER_OPENS_AFTER, LONGEST_PAUSE


class Health(Struct, frozen=True):
    # Failures in a row up to the one that opened the breaker, then one for each probe that failed.
    failures: int
    # Until when nothing is sent.
    closed_until: int
    # Since when every try has failed, later by whatever time went by without any; when the owner was told of that; when
    # the last that is counted was.
    failing_since: int | None
    warned_at: int | None
    failed_at: int | None


WELL = Health(0, 0, None, None, None)


def after_failure(health: Health, now: int, left_at: int, longest_try: int) -> Health:
    """Of a try that left then, which takes no longer than that."""
    since = health.failing_since
    if since is None:
        health = replace(health, failing_since=now)
    elif (pause := now - (health.failed_at or since)) > LONGEST_PAUSE:
        # Nothing was tried for longer than any retry waits: those days say nothing of the receiver.
        health = replace(health, failing_since=since + pause)
    is_open = now < health.closed_until <= now + BREAKER_LONGEST
    is_over = health.failures >= BREAKER_OPENS_AFTER and health.closed_until <= now
    if is_open or (is_over and 0 < (health.failed_at or 0) - left_at <= longest_try):
        # It left before the breaker opened: what it came to is no news, also where a test has ended the pause since.
        return health
    failures = health.failures + 1
    return replace(health, failed_at=now, failures=failures, closed_until=_closed_until(failures, now))


def _closed_until(failures: int, now: int) -> int:
    if failures < BREAKER_OPENS_AFTER:
        return 0
    # The exponent is bounded: a number of thousands of binary digits is nobody's pause.
    return now + min(BREAKER_FIRST << min(failures - BREAKER_OPENS_AFTER, 10), BREAKER_LONGEST)
