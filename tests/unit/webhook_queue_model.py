"""Rows of one webhook as the database would have them, beside the queue in memory that is tested."""

import itertools
import time
from dataclasses import dataclass, field

from hubgate.server.clock import SECOND
from hubgate.server.webhooks.delivering.queue import Queue
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.health import WELL
from hubgate.server.webhooks.model import MAX_IN_FLIGHT, SIZES, Sizes

WEBHOOK = "0" * 24
START = 1_000_000 * SECOND
RETRY_AFTER, NO_SLOT_WAIT = 5 * SECOND, SECOND


def item(
    delivery_id: str,
    repo_id: str = "",
    repo_seq: int = 0,
    *,
    source: Source = Source.LANES,
    attempts: int = 0,
    due_at: int = 0,
    is_test: bool = False,
    webhook_id: str = WEBHOOK,
) -> Item:
    is_replay = source is Source.REPLAYS
    return Item(delivery_id, webhook_id, repo_id, repo_seq, attempts, source, is_replay, is_test, due_at)


def WELL_WINDOW() -> Window:  # noqa: N802 (reads like a constant)
    return Window(WELL, 0, False, [], [], [], [])


def started(queue: Queue, now: int) -> list[Item]:
    """Check and start everything that may start now."""
    moment, found = time.monotonic(), list[Item]()
    while True:
        while one := queue.next_to_start(now, moment):
            found.append(one)
        checked = queue.to_check(100, now, moment)
        if not checked:
            return found
        for each in checked:
            each.checked_at = moment
        queue.checked(checked, now)


@dataclass
class _Row:
    id: str
    repo_id: str
    repo_seq: int
    is_replay: bool
    due_at: int
    attempts: int = 0
    tried_at: int | None = None
    is_delivered: bool = False

    @property
    def item(self) -> Item:
        source = Source.RETRIES if self.attempts else Source.REPLAYS if self.is_replay else Source.LANES
        return Item(
            self.id,
            WEBHOOK,
            self.repo_id,
            self.repo_seq,
            self.attempts,
            source,
            self.is_replay,
            due_at=self.due_at,
            tried_at=self.tried_at,
        )


@dataclass
class Rows:
    """Checks with every start what is promised: order, limits, and that nothing is sent twice at a time."""

    ordered: bool = False
    sizes: Sizes = SIZES
    queue: Queue = field(default_factory=Queue)
    now: int = START
    rows: dict[str, _Row] = field(default_factory=dict)
    in_flight: dict[str, Item] = field(default_factory=dict)
    # Deliveries whose first attempt has ended, or that were delivered, as far as this process knows.
    tried: set[str] = field(default_factory=set)
    delivered: set[str] = field(default_factory=set)
    unstored: list[tuple[Item, bool, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue.sizes = self.sizes

    def add(self, repo_id: str, now: int | None = None, *, is_replay: bool = False) -> Item:
        seq = len(self.rows) + 1
        row = _Row(f"{seq:05}", repo_id, seq, is_replay, self.now if now is None else now)
        self.now = row.due_at
        self.rows[row.id] = row
        return row.item

    def hand_over(self, repo_id: str) -> None:
        self.queue.hand_over([self.add(repo_id)], self.now)

    def read_again(self) -> None:
        self.queue.read_again(WEBHOOK)

    def read(self) -> None:
        for webhook_id, after_repo in self.queue.take_unread(10).items():
            self.queue.load(webhook_id, self._window(after_repo), self.now)

    def _window(self, after_repo: str) -> Window:
        waiting = [row for row in self.rows.values() if not row.is_delivered]
        replays = [row for row in waiting if not row.attempts and row.is_replay]
        retries = sorted((row for row in waiting if row.attempts), key=lambda row: (row.due_at, row.id))
        untried = [row for row in waiting if not row.attempts and not row.is_replay and row.repo_id > after_repo]
        repos = sorted({row.repo_id for row in untried})[: self.sizes.lanes]
        lanes = [
            row
            for repo_id in repos
            for row in itertools.islice((row for row in untried if row.repo_id == repo_id), self.sizes.per_lane)
        ]
        return Window(
            WELL,
            0,
            self.ordered,
            [row.item for row in replays[: self.sizes.replays]],
            [row.item for row in retries[: self.sizes.retries]],
            [row.item for row in lanes],
            [(row.repo_id, row.id, row.tried_at or 0) for row in retries if self.ordered and not row.is_replay],
        )

    def start(self) -> list[Item]:
        found = started(self.queue, self.now)
        for one in found:
            row = self.rows[one.id]
            assert one.id not in self.in_flight, "it is in flight"
            assert one.id not in self.delivered, "it was delivered"
            assert one.attempts == 0 or one.attempts == row.attempts, "the attempt before it is not stored"
            if not row.is_replay and one.id not in self.tried:
                earlier = [each for each in self.rows.values() if each.repo_id == row.repo_id and each.id < row.id]
                assert all(each.id in self.tried for each in earlier if not each.is_replay), "it overtakes another"
            self.in_flight[one.id] = one
            assert len(self.in_flight) <= MAX_IN_FLIGHT
        return found

    def end(self, one: Item, how: str) -> None:
        """As `Dispatch` does: "delivered", "failed" or "unsent"."""
        del self.in_flight[one.id]
        queue = self.queue.end(one)
        if how == "unsent":
            queue.put_back(one, self.now + NO_SLOT_WAIT)
        else:
            lane = one.repo_id if one.source is Source.LANES else None
            one.attempts += 1
            one.tried_at = one.tried_at or self.now
            self.tried.add(one.id)
            failed = queue.blockers.setdefault(one.repo_id, {}) if queue.ordered and not one.is_replay else {}
            failed.pop(one.id, None)
            if how == "failed":
                one.due_at = self.now + RETRY_AFTER
                failed[one.id] = one.tried_at
                queue.add_retry(one)
            else:
                self.delivered.add(one.id)
            self.unstored.append((one, how == "delivered", one.due_at))
            if lane is not None:
                queue.free(lane)
        self.queue.release_host(one.host, self.now)
        self.queue.place(queue, self.now)

    def store(self) -> None:
        results, self.unstored = self.unstored, []
        for one, is_delivered, due_at in results:
            row = self.rows[one.id]
            row.attempts, row.tried_at, row.is_delivered, row.due_at = one.attempts, one.tried_at, is_delivered, due_at
        self.queue.settle([(WEBHOOK, one.id) for one, _, _ in results], self.now)

    def pass_time(self, time: int) -> None:
        self.now += time
        self.queue.due(self.now)

    def finish(self) -> None:
        """Deliver all that waits. A delivery that does not end was lost."""
        for _ in range(10 * len(self.rows) + 50):
            self.read()
            self.start()
            for one in list(self.in_flight.values()):
                self.end(one, "delivered")
            self.store()
            self.pass_time(RETRY_AFTER)
        lost = [row for row in self.rows.values() if not row.is_delivered]
        assert not lost, lost
        assert (self.queue.webhooks, self.queue.unread, self.queue.unloaded, self.queue.in_flight) == ({}, {}, {}, 0)
