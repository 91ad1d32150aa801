"""Replays as they are stored, what a replay selects, and the limits of both."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.ids import is_id
from hubgate.server.webhooks.management.validation import InvalidField
from hubgate.server.webhooks.model import DELIVERED, FAILED, SKIPPED, STORED

RUNNING, DONE, CANCELLED = "running", "done", "cancelled"
REPLAYABLE = (FAILED, SKIPPED, DELIVERED, STORED)
DEFAULT_STATES = (FAILED, SKIPPED)
SLOWEST, FASTEST, DEFAULT_RATE = 1, 200, 20
MAX_PICKED = 100
# Running replays of one webhook. They run one after another.
MAX_RUNNING = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE = "2026-11-15T08:00:00Z"


class Selection(Struct, frozen=True):
    """The deliveries to replay: the `picked` ones, or those since a time that are in one of these states."""

    since: int = 0
    states: tuple[str, ...] = DEFAULT_STATES
    picked: tuple[str, ...] = ()
    # Limits an app to deliveries it may see.
    visible: VisibleRepos | None = None


class Replay(Struct, frozen=True):
    """A row of the table `replays`, with the number of queued deliveries that wait for their first attempt."""

    id: str
    webhook_id: str
    since: int
    states: str
    picked: str | None
    visible: str | None
    rate: int
    state: str
    total: int
    queued: int
    done: int
    position: int
    last_position: int
    created_at: int
    ended_at: int | None
    waiting: int = 0

    @property
    def sent(self) -> int:
        """How many deliveries had their first attempt, or may not be sent any more."""
        return self.queued - self.waiting if self.state == RUNNING else self.done

    @property
    def is_queued(self) -> bool:
        """Whether all selected deliveries have been queued."""
        return self.position >= self.last_position

    @property
    def selection(self) -> Selection:
        return Selection(
            self.since,
            tuple(self.states.split()),
            () if self.picked is None else msgspec.json.decode(self.picked, type=tuple[str, ...]),
            None if self.visible is None else msgspec.json.decode(self.visible, type=VisibleRepos),
        )


def parse_since(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
        # Without a zone it is UTC.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        # Not with timestamp(): a float is inexact by up to a microsecond.
        return max((moment - _EPOCH) // timedelta(microseconds=1), 0)
    except (ValueError, OverflowError):
        raise InvalidField("since", f"Give a time such as {_EXAMPLE}.") from None


def check_states(states: Collection[str]) -> tuple[str, ...]:
    if not states or not set(states) <= set(REPLAYABLE):
        raise InvalidField("states", f"Choose one or more states: {', '.join(REPLAYABLE)}.")
    return tuple(state for state in REPLAYABLE if state in states)


def check_rate(rate: int) -> int:
    if not SLOWEST <= rate <= FASTEST:
        raise InvalidField("rate", f"Choose a rate of {SLOWEST} to {FASTEST} deliveries a second.")
    return rate


def check_picked(ids: Collection[str]) -> tuple[str, ...]:
    if not 1 <= len(ids) <= MAX_PICKED or not all(map(is_id, ids)):
        raise InvalidField("deliveries", f"Name 1 to {MAX_PICKED} deliveries by their ids.")
    return tuple(dict.fromkeys(ids))
