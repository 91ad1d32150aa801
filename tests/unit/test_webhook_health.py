"""The breaker of a webhook, from one try to the next."""

from dataclasses import replace

from hubgate.server.clock import DAY, MINUTE, SECOND
from hubgate.server.webhooks.delivering.results.health import WELL, Health
from hubgate.server.webhooks.delivering.results.health import after_failure as after_failure_of
from hubgate.server.webhooks.model import LONGEST_PAUSE

NOW = 1_000 * MINUTE
LONGEST_TRY = 30 * SECOND


def after_failure(health: Health, now: int, left_at: int | None = None) -> Health:
    """At once, unless it left earlier."""
    return after_failure_of(health, now, now if left_at is None else left_at, LONGEST_TRY)


def failed(times: int, health: Health = WELL) -> Health:
    for _ in range(times):
        health = after_failure(health, NOW)
    return health


def test_the_tenth_failure_opens_it() -> None:
    assert failed(9).closed_until == 0
    assert failed(10) == Health(10, NOW + 10 * SECOND, NOW, None, NOW)


def test_what_was_in_the_air_when_it_opened_is_no_news() -> None:
    assert failed(17) == failed(10)


def test_nor_where_a_test_has_ended_the_pause_since() -> None:
    opened = failed(10)
    tested = replace(opened, closed_until=NOW + 2 * SECOND)
    assert after_failure(tested, NOW + 3 * SECOND, left_at=NOW - SECOND) == tested
    probed = after_failure(tested, NOW + 3 * SECOND, left_at=NOW + 2 * SECOND)
    assert (probed.failures, probed.closed_until) == (11, NOW + 23 * SECOND)
    # A clock that was set back says nothing of when it left.
    assert after_failure(tested, NOW + 3 * SECOND, left_at=NOW - DAY).failures == 11


def test_each_probe_that_fails_doubles_the_pause_up_to_five_minutes() -> None:
    health, at, pauses = failed(10), NOW, []
    for _ in range(40):
        at = health.closed_until
        health = after_failure(health, at)
        pauses.append((health.closed_until - at) // SECOND)
    assert pauses[:6] == [20, 40, 80, 160, 300, 300]
    assert set(pauses[5:]) == {300}


def test_a_clock_that_was_set_back_does_not_keep_it_open() -> None:
    open_for_an_hour = Health(10, NOW + 60 * MINUTE, NOW, None, NOW)
    assert after_failure(open_for_an_hour, NOW).closed_until == NOW + 20 * SECOND


def test_days_without_any_try_are_no_days_of_failure() -> None:
    warned = Health(3, 0, NOW, NOW + DAY, NOW + 2 * DAY)
    again = NOW + 2 * DAY + LONGEST_PAUSE
    assert after_failure(warned, again) == Health(4, 0, NOW, NOW + DAY, again)
    longer = again + 1
    assert after_failure(warned, longer) == Health(4, 0, longer - 2 * DAY, NOW + DAY, longer)
    # Before the last failure was noted, only the first was known.
    unknown = Health(3, 0, NOW, None, None)
    assert after_failure(unknown, again).failing_since == again
