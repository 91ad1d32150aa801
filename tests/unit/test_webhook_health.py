"""A webhook's circuit breaker, from one attempt to the next."""

from msgspec.structs import replace

from hubgate.server.clock import DAY, MINUTE, SECOND
from hubgate.server.webhooks.health import WELL, Health
from hubgate.server.webhooks.health import after_failure as after_failure_of
from hubgate.server.webhooks.model import LONGEST_PAUSE

NOW = 1_000 * MINUTE
LONGEST_TRY = 30 * SECOND


def after_failure(health: Health, now: int, left_at: int | None = None) -> Health:
    """The attempt was sent just before, unless given."""
    return after_failure_of(health, now, now if left_at is None else left_at, LONGEST_TRY)


def failed(times: int, health: Health = WELL) -> Health:
    for _ in range(times):
        health = after_failure(health, NOW)
    return health


def test_tenth_failure_opens_the_breaker() -> None:
    assert failed(9).closed_until == 0
    assert failed(10) == Health(10, NOW + 10 * SECOND, NOW, None, NOW)


def test_result_of_an_attempt_sent_before_it_opened_changes_nothing() -> None:
    assert failed(17) == failed(10)


def test_result_of_an_earlier_attempt_does_not_extend_a_pause_ended_by_a_test() -> None:
    opened = failed(10)
    tested = replace(opened, closed_until=NOW + 2 * SECOND)
    assert after_failure(tested, NOW + 3 * SECOND, left_at=NOW - SECOND) == tested
    probed = after_failure(tested, NOW + 3 * SECOND, left_at=NOW + 2 * SECOND)
    assert (probed.failures, probed.closed_until) == (11, NOW + 23 * SECOND)
    # After the clock was set back, it is unknown when the attempt was sent.
    assert after_failure(tested, NOW + 3 * SECOND, left_at=NOW - DAY).failures == 11


def test_each_failed_probe_doubles_the_pause_up_to_five_minutes() -> None:
    health, at, pauses = failed(10), NOW, []
    for _ in range(40):
        at = health.closed_until
        health = after_failure(health, at)
        pauses.append((health.closed_until - at) // SECOND)
    assert pauses[:6] == [20, 40, 80, 160, 300, 300]
    assert set(pauses[5:]) == {300}


def test_clock_set_back_does_not_prolong_the_pause() -> None:
    open_for_an_hour = Health(10, NOW + 60 * MINUTE, NOW, None, NOW)
    assert after_failure(open_for_an_hour, NOW).closed_until == NOW + 20 * SECOND


def test_days_without_an_attempt_do_not_count_as_failure() -> None:
    warned = Health(3, 0, NOW, NOW + DAY, NOW + 2 * DAY)
    again = NOW + 2 * DAY + LONGEST_PAUSE
    assert after_failure(warned, again) == Health(4, 0, NOW, NOW + DAY, again)
    longer = again + 1
    assert after_failure(warned, longer) == Health(4, 0, longer - 2 * DAY, NOW + DAY, longer)
    # Before the last failure was recorded, only the first was known.
    unknown = Health(3, 0, NOW, None, None)
    assert after_failure(unknown, again).failing_since == again
