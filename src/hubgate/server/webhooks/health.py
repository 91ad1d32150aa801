"""The health of a webhook from one attempt to the next. No I/O."""

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.webhooks.model import BREAKER_FIRST, BREAKER_LONGEST, BREAKER_OPENS_AFTER, LONGEST_PAUSE


class Health(Struct, frozen=True):
    # Consecutive failures up to the one that opened the circuit breaker, then one for each failed probe.
    failures: int
    # The breaker is open until this time: nothing is sent.
    closed_until: int
    # The time since which every attempt has failed, without longer pauses; when the owner was warned about it; and when
    # an attempt last failed.
    failing_since: int | None
    warned_at: int | None
    failed_at: int | None


WELL = Health(0, 0, None, None, None)


def after_failure(health: Health, now: int, left_at: int, longest_try: int) -> Health:
    """The health after a failed attempt that started at `left_at`. No attempt takes longer than `longest_try`."""
    since = health.failing_since
    if since is None:
        health = replace(health, failing_since=now)
    elif (pause := now - (health.failed_at or since)) > LONGEST_PAUSE:
        # There was no attempt for longer than any retry waits: that time says nothing about the receiver.
        health = replace(health, failing_since=since + pause)
    is_open = now < health.closed_until <= now + BREAKER_LONGEST
    is_over = health.failures >= BREAKER_OPENS_AFTER and health.closed_until <= now
    if is_open or (is_over and 0 < (health.failed_at or 0) - left_at <= longest_try):
        # The attempt started before the breaker opened, so it does not count, even if a test half-opened the breaker.
        return health
    failures = health.failures + 1
    return replace(health, failed_at=now, failures=failures, closed_until=_closed_until(failures, now))


def _closed_until(failures: int, now: int) -> int:
    if failures < BREAKER_OPENS_AFTER:
        return 0
    # The exponent is bounded, because `failures` is not.
    return now + min(BREAKER_FIRST << min(failures - BREAKER_OPENS_AFTER, 10), BREAKER_LONGEST)
