"""The deliveries of one webhook, in memory: lanes, circuit breaker, order and due times. No I/O.

The rows in the database are authoritative. Memory has windows of them: the first tests and replays, the first retries,
and the first untried deliveries of some repos. Once a window is used up, the rows are read again.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.model import (
    BREAKER_LONGEST,
    BREAKER_OPENS_AFTER,
    LANE_BLOCKED_FOR,
    LONGEST_WAIT,
    MAX_IN_FLIGHT,
    SIZES,
    Sizes,
)

if TYPE_CHECKING:
    from hubgate.server.webhooks.requests.request import Prepared


class Source(IntEnum):
    """Where a delivery waits. The sources of a webhook take turns."""

    REPLAYS = 0
    RETRIES = 1
    LANES = 2


@dataclass(slots=True, eq=False)
class Item:
    """A delivery that waits or is in flight."""

    id: str
    webhook_id: str
    repo_id: str
    repo_seq: int
    # Attempts so far.
    attempts: int
    source: Source
    is_replay: bool = False
    is_test: bool = False
    due_at: int = 0
    # When the first attempt ended; None before that.
    tried_at: int | None = None
    # From the last check: the monotonic time at which the check began, and the columns that sending needs.
    checked_at: float = 0.0
    body: bytes = b""
    depth: int = 0
    # The host of the request in flight.
    host: str = ""
    # Part of a replay of many deliveries, which has a rate.
    is_paced: bool = False
    # How often it was not sent because the receiver, a Space, was starting.
    starts: int = 0


@dataclass(slots=True, eq=False)
class Lane:
    """The untried deliveries of one repo, in order. The next starts when the first attempt of the one before ends."""

    items: list[Item] = field(default_factory=list)
    is_busy: bool = False
    # More of this repo are stored than are in memory.
    has_more: bool = False


@dataclass(slots=True, eq=False)
class Window:
    """The first waiting deliveries of a webhook, and its settings, as read from the database."""

    health: Health
    resets: int
    ordered: bool
    replays: list[Item]
    retries: list[Item]
    untried: list[Item]
    # Failed deliveries that block lanes of an ordered webhook: repo, delivery, and when its first attempt ended.
    blockers: list[tuple[str, str, int]]
    # The shortest time between two requests of a replay of many deliveries; 0 without one.
    interval: int = 0


@dataclass(slots=True, eq=False)
class WebhookQueue:
    id: str
    # Its shard is being released: nothing starts.
    is_leaving: bool = False
    sizes: Sizes = SIZES
    # None until the first check or read.
    health: Health | None = None
    # The version of the stored health: a reset by the owner of the webhook takes precedence over what is known here.
    resets: int = 0
    ordered: bool = False
    # From the last check.
    prepared: "Prepared | None" = None
    host: str = ""
    in_flight: dict[str, Item] = field(default_factory=dict)
    replays: list[Item] = field(default_factory=list)
    retries: list[tuple[int, str, Item]] = field(default_factory=list)
    lanes: dict[str, Lane] = field(default_factory=dict)
    # Repos whose lane has a delivery and is not busy, in turn.
    free_lanes: dict[str, None] = field(default_factory=dict)
    blockers: dict[str, dict[str, int]] = field(default_factory=dict)
    # Deliveries in flight, or with a result that is not stored yet: their rows still say that they wait.
    unsettled: set[str] = field(default_factory=set)
    more_lanes: bool = False
    more_replays: bool = False
    # When the first stored retry that is not in memory is due.
    more_retries_at: int | None = None
    # The next read of the lanes continues after this repo.
    last_repo: str = ""
    # The interval of a replay of many deliveries, and when its next request may start.
    interval: int = 0
    paced_from: int = 0
    # Used by `Queue`.
    is_placed: bool = False
    is_checking: bool = False
    unused_checks: int = 0
    turn: int = Source.REPLAYS

    @property
    def is_empty(self) -> bool:
        waiting = self.replays or self.retries or self.lanes or self.unsettled
        return not waiting and not self.more_lanes and not self.more_replays and self.more_retries_at is None

    @property
    def has_waiting(self) -> bool:
        return bool(self.replays or self.retries) or any(lane.items for lane in self.lanes.values())

    def is_used_up(self, now: int) -> bool:
        """Whether reading the rows again would find more: not before the results of those in memory are stored."""
        if len(self.unsettled) > len(self.in_flight):
            return False
        lanes = self.more_lanes and not any(lane.items for lane in self.lanes.values())
        first = self.retries[0][0] if self.retries else None
        later = self.more_retries_at
        # Those that wait only for the rate of their replay would be read again.
        retries = later is not None and (first is None or later <= now < first != self.paced_from)
        return (
            lanes or retries or len(self.retries) > 2 * self.sizes.retries or (self.more_replays and not self.replays)
        )

    def limit(self, now: int, each: int) -> int:
        """How many requests may be in flight: none while the circuit breaker is open, then one, as a probe."""
        if self.is_leaving:
            return 0
        if self.health is None:
            return each
        # A breaker that would stay open for longer than BREAKER_LONGEST was opened before a clock was set back.
        if now < self.health.closed_until <= now + BREAKER_LONGEST:
            return 0
        return 1 if self.health.failures >= BREAKER_OPENS_AFTER else each

    def first(self, now: int) -> Item | None:
        """The next delivery to start. Tests are first; then replays, retries and lanes take turns."""
        if not self.replays and not self.retries:
            repo_id = self._first_lane(now)
            return None if repo_id is None else self.lanes[repo_id].items[0]
        if self.replays and self.replays[0].is_test:
            return self.replays[0]
        opens_at = self._rate_opens_at(now)
        while self.retries and self.retries[0][2].is_paced and self.retries[0][0] <= now < opens_at:
            # Behind other retries, which do not wait for those of a replay.
            heapq.heapreplace(self.retries, (opens_at, *self.retries[0][1:]))
        for source in (self.turn, (self.turn + 1) % 3, (self.turn + 2) % 3):
            if source == Source.REPLAYS and self.replays and (opens_at <= now or not self.replays[0].is_paced):
                return self.replays[0]
            if source == Source.RETRIES and self.retries and self._is_due(self.retries[0], now):
                return self.retries[0][2]
            if source == Source.LANES and (repo_id := self._first_lane(now)) is not None:
                return self.lanes[repo_id].items[0]
        return None

    def _rate_opens_at(self, now: int) -> int:
        """When the next request of a replay of many deliveries may start."""
        # A later time was computed before a clock was set back.
        return self.paced_from if now < self.paced_from <= now + self.interval else now

    def set_interval(self, interval: int, now: int) -> None:
        """Apply the rate of a replay. Another process may have sent just now, so that the first request waits too."""
        if interval != self.interval:
            self.interval, self.paced_from = interval, now + interval

    def _is_due(self, retry: tuple[int, str, Item], now: int) -> bool:
        """Whether a retry may start: not before the result of the attempt before it is stored."""
        return _has_come(retry[0], now) and retry[1] not in self.unsettled

    def _first_lane(self, now: int) -> str | None:
        for repo_id in self.free_lanes:
            if self._opens_at(repo_id, now) <= now:
                return repo_id
        return None

    def _opens_at(self, repo_id: str, now: int) -> int:
        """When the first delivery of a free lane may start."""
        due_at = self.lanes[repo_id].items[0].due_at
        failed = self.blockers.get(repo_id) if self.ordered else None
        if not failed and due_at <= now:
            return due_at
        times = [due_at, max(failed.values()) + LANE_BLOCKED_FOR if failed else 0]
        # A later time was computed before a clock was set back.
        return max((time for time in times if time <= now + LANE_BLOCKED_FOR), default=now)

    def take(self, item: Item, now: int) -> None:
        if item.is_paced:
            self.paced_from = now + self.interval
        if item.source is Source.LANES:
            self.lanes[item.repo_id].items.pop(0)
            self.lanes[item.repo_id].is_busy = True
            self.free_lanes.pop(item.repo_id)
        elif item.source is Source.RETRIES:
            heapq.heappop(self.retries)
        else:
            self.replays.pop(0)
        self.turn = (item.source + 1) % 3
        self.unsettled.add(item.id)
        self.in_flight[item.id] = item
        self.unused_checks -= 1

    def put_back(self, item: Item, due_at: int) -> None:
        """Return a delivery that was taken and not sent, for a later time."""
        self.unsettled.discard(item.id)
        item.due_at = due_at
        if item.source is not Source.LANES:
            self.add_retry(item)
            return
        lane = self.lanes.setdefault(item.repo_id, Lane(has_more=True))
        lane.items.insert(0, item)
        self.free(item.repo_id)

    def upcoming(self, now: int) -> Iterator[Item]:
        """Deliveries that may start soon, in about that order; some twice."""
        if (item := self.first(now)) is not None:
            # Nothing starts before this one is checked.
            yield item
        yield from self.replays[:MAX_IN_FLIGHT]
        yield from (entry[2] for entry in self.retries[:MAX_IN_FLIGHT] if _has_come(entry[0], now))
        repos = [*self.free_lanes, *(repo_id for repo_id, lane in self.lanes.items() if lane.is_busy)]
        for place in range(self.sizes.per_lane):
            for repo_id in repos:
                if place < len(self.lanes[repo_id].items):
                    yield self.lanes[repo_id].items[place]

    def add_to_lane(self, item: Item) -> None:
        """Add a delivery that was just stored, unless earlier ones of its repo are not in memory."""
        lane = self.lanes.get(item.repo_id)
        if lane is None:
            if self.more_lanes or len(self.lanes) >= self.sizes.lanes:
                self.more_lanes = True
                return
            # The lanes of a webhook that was dropped are forgotten, its requests are not.
            is_busy = any(
                each.repo_id == item.repo_id for each in self.in_flight.values() if each.source is Source.LANES
            )
            lane = self.lanes[item.repo_id] = Lane(is_busy=is_busy)
        if lane.has_more or len(lane.items) >= self.sizes.per_lane:
            lane.has_more = True
            return
        lane.items.append(item)
        self.free(item.repo_id)

    def free(self, repo_id: str) -> None:
        """Let the next delivery of a lane start, unless the lane is busy."""
        lane = self.lanes.get(repo_id)
        if lane is None or lane.is_busy:
            return
        if lane.items:
            self.free_lanes.setdefault(repo_id)
        else:
            self.more_lanes |= lane.has_more
            del self.lanes[repo_id]

    def add_retry(self, item: Item) -> None:
        item.source = Source.RETRIES
        if len(self.retries) >= self.sizes.retries and item.id not in self.unsettled:
            self.more_retries_at = min(self.more_retries_at or item.due_at, item.due_at)
        else:
            heapq.heappush(self.retries, (item.due_at, item.id, item))

    def discard(self, item: Item) -> None:
        """Remove a waiting delivery."""
        self.blockers.get(item.repo_id, {}).pop(item.id, None)
        if item.source is Source.LANES:
            lane = self.lanes.get(item.repo_id)
            if lane is not None and item in lane.items:
                lane.items.remove(item)
                self.free_lanes.pop(item.repo_id, None)
                self.free(item.repo_id)
        elif item.source is Source.RETRIES:
            self.retries = [entry for entry in self.retries if entry[2] is not item]
            heapq.heapify(self.retries)
        elif item in self.replays:
            self.replays.remove(item)

    def next_time(self, now: int) -> int | None:
        """When to look at this webhook again if nothing happens until then."""
        if self.health and now < self.health.closed_until <= now + BREAKER_LONGEST:
            return self.health.closed_until
        times = [self._opens_at(repo_id, now) for repo_id in self.free_lanes]
        times += [self.retries[0][0]] if self.retries else []
        times += [self._rate_opens_at(now)] if self.replays or self.retries else []
        times += [self.more_retries_at] if self.more_retries_at is not None else []
        return min((time for time in times if time > now), default=None)

    def clear(self) -> None:
        """Forget waiting deliveries, but not those in flight."""
        self.replays.clear()
        self.retries.clear()
        self.lanes.clear()
        self.free_lanes.clear()
        self.blockers.clear()
        self.more_lanes = self.more_replays = False
        self.more_retries_at = None

    def load(self, window: Window) -> None:
        """Replace waiting deliveries by those that were read. Retries whose last result is not stored yet stay."""
        if self.health is None or self.resets != window.resets:
            self.health, self.resets = window.health, window.resets
        self.ordered = window.ordered
        retries = [entry for entry in self.retries if entry[1] in self.unsettled]
        blockers = [
            (repo_id, delivery_id, tried_at)
            for repo_id, failed in self.blockers.items()
            for delivery_id, tried_at in failed.items()
            if delivery_id in self.unsettled
        ]
        self.clear()
        replays = [item for item in window.replays if item.id not in self.unsettled]
        self.replays.extend(sorted(replays, key=lambda item: (not item.is_test, item.is_paced)))
        self.more_replays = len(window.replays) >= self.sizes.replays
        retries += [(item.due_at, item.id, item) for item in window.retries if item.id not in self.unsettled]
        heapq.heapify(retries)
        self.retries = retries
        if len(window.retries) >= self.sizes.retries:
            self.more_retries_at = window.retries[-1].due_at
        for repo_id, delivery_id, tried_at in [*window.blockers, *blockers]:
            self.blockers.setdefault(repo_id, {})[delivery_id] = tried_at
        self._load_lanes(window.untried)

    def _load_lanes(self, untried: list[Item]) -> None:
        counts = Counter(item.repo_id for item in untried)
        for item in untried:
            lane = self.lanes.setdefault(item.repo_id, Lane(has_more=counts[item.repo_id] >= self.sizes.per_lane))
            if item.id not in self.unsettled:
                lane.items.append(item)
        for item in self.in_flight.values():
            if item.source is Source.LANES:
                self.lanes.setdefault(item.repo_id, Lane(has_more=True)).is_busy = True
        # The lanes before `last_repo` were not read this time.
        self.more_lanes = bool(self.last_repo) or len(counts) >= self.sizes.lanes
        self.last_repo = max(counts) if len(counts) >= self.sizes.lanes else ""
        for repo_id in list(self.lanes):
            self.free(repo_id)


def _has_come(due_at: int, now: int) -> bool:
    """Also if no wait is that long: such a time was computed before a clock was set back."""
    return due_at <= now or due_at > now + 2 * LONGEST_WAIT
