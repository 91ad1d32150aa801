"""The webhooks of this process that have something to send, and whose turn it is. No I/O.

A webhook that may start a delivery is in the ring, or waits for a free slot at its host. Receivers that hang occupy
their own slots and delay no others. Before a delivery starts, its state and permission are checked (`to_check`): for
many deliveries in one statement, some of them ahead of their turn.

A webhook that is neither in memory nor `unread` nor `unloaded` has nothing to send.
"""

import heapq
import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hubgate.server.clock import SECOND
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, WebhookQueue, Window
from hubgate.server.webhooks.model import MAX_IN_FLIGHT, SIZES, Sizes
from hubgate.server.webhooks.shards.store import shard_of

MAX_TOTAL_IN_FLIGHT = 4096
# Requests in flight to one host, divided by the running processes; each may have a few.
MAX_PER_HOST, FEWEST_PER_HOST = 64, 8
# Checks of state and permission: how old one may be when a request starts, and deliveries of a webhook in one.
FRESH_SECONDS, CHECKED_AHEAD = 0.1, 2 * MAX_IN_FLIGHT
# Rows of further webhooks are read, and new deliveries are handed over, while fewer webhooks than this are in memory.
MAX_READ, MAX_HANDED_OVER = MAX_TOTAL_IN_FLIGHT, 20_000
# Webhooks that are considered for one read.
MAX_LOOKED_AT = 1024
# A webhook that can send nothing for longer than this is removed from memory.
UNLOADED_AFTER = 5 * SECOND


@dataclass(eq=False)
class Queue:
    webhooks: dict[str, WebhookQueue] = field(default_factory=dict)
    # Webhooks whose rows must be read, in this order.
    unread: dict[str, None] = field(default_factory=dict)
    # Shards that are being released.
    leaving: set[int] = field(default_factory=set)
    # Webhooks that are not in memory although rows wait, and when these are due.
    unloaded: dict[str, int] = field(default_factory=dict)
    in_flight: int = 0
    # Whether the earliest due time has become earlier.
    has_earlier_time: bool = False
    per_host: int = MAX_PER_HOST
    sizes: Sizes = SIZES
    max_read: int = MAX_READ
    _ring: deque[WebhookQueue] = field(default_factory=deque)
    _to_check: deque[WebhookQueue] = field(default_factory=deque)
    _at_host: Counter[str] = field(default_factory=Counter)
    _waiting_for_host: defaultdict[str, deque[WebhookQueue]] = field(default_factory=lambda: defaultdict(deque))
    _timers: list[tuple[int, str]] = field(default_factory=list)
    # The first timer of each webhook.
    _timer_at: dict[str, int] = field(default_factory=dict)
    _looked_at: int = 0

    def hand_over(self, items: Iterable[Item], now: int) -> None:
        """Add deliveries that were just stored, in the order of their lanes."""
        for item in items:
            if item.webhook_id in self.unloaded:
                self.read_again(item.webhook_id)
            if item.webhook_id in self.unread:
                # Read later, together with what waits before it.
                continue
            queue = self.webhooks.get(item.webhook_id)
            if queue is None:
                if len(self.webhooks) >= MAX_HANDED_OVER:
                    self.unread[item.webhook_id] = None
                    continue
                queue = self._new_queue(item.webhook_id)
            queue.add_to_lane(item)
            queue.unused_checks += item.checked_at > 0
            self.place(queue, now)

    def read_again(self, webhook_id: str) -> None:
        self.unloaded.pop(webhook_id, None)
        self.unread[webhook_id] = None

    def take_unread(self, limit: int) -> dict[str, str]:
        """Webhooks whose rows must be read, each with the repo after which the lanes to read begin."""
        room = self.max_read - len(self.webhooks)
        found: dict[str, str] = {}
        for webhook_id in list(itertools.islice(self.unread, MAX_LOOKED_AT)):
            if len(found) == limit:
                break
            del self.unread[webhook_id]
            queue = self.webhooks.get(webhook_id)
            if queue is None and room <= 0:
                # To the end: those in memory, which leave it only after they have been read, must not wait behind it.
                self.unread[webhook_id] = None
                continue
            room -= queue is None
            found[webhook_id] = queue.last_repo if queue else ""
        return found

    def load(self, webhook_id: str, window: Window | None, now: int) -> None:
        """Replace the waiting deliveries of a webhook by those that were read; None if nothing may be sent."""
        if window is None:
            self.drop(webhook_id)
            return
        queue = self.webhooks.get(webhook_id) or self._new_queue(webhook_id)
        queue.load(window)
        queue.set_interval(window.interval, now)
        self.place(queue, now)
        self._forget_if_empty(queue)

    def drop(self, webhook_id: str) -> None:
        """Forget waiting deliveries. Requests in flight end as usual."""
        if queue := self.webhooks.get(webhook_id):
            queue.clear()
            self._forget_if_empty(queue)

    def leave(self, shards: set[int]) -> list[WebhookQueue]:
        """Start nothing more for these shards. Returns the webhooks that may have requests in flight."""
        self.leaving = shards
        queues = [queue for queue in self.webhooks.values() if shard_of(queue.id) in shards]
        for queue in queues:
            queue.is_leaving = True
        return queues

    def stay(self, now: int) -> None:
        """Continue with shards that could not be released."""
        self.leaving = set()
        for queue in self.webhooks.values():
            queue.is_leaving = False
            self.place(queue, now)

    def forget(self, shards: set[int]) -> None:
        """Forget all webhooks of these shards."""
        self.leaving = set()
        for known in (self.webhooks, self.unread, self.unloaded):
            for webhook_id in [each for each in known if shard_of(each) in shards]:
                del known[webhook_id]

    @property
    def has_unchecked(self) -> bool:
        return bool(self._to_check)

    def to_check(self, limit: int, now: int, moment: float) -> list[Item]:
        """The next deliveries to check. `moment` is the monotonic time."""
        found: list[Item] = []
        while self._to_check and len(found) < limit:
            queue = self._to_check.popleft()
            upcoming = dict.fromkeys(itertools.islice(queue.upcoming(now), 2 * CHECKED_AHEAD))
            stale = [item for item in upcoming if item.checked_at + FRESH_SECONDS / 2 < moment]
            found += stale[: min(CHECKED_AHEAD, limit - len(found))]
            if not stale:
                queue.is_checking = False
                self.place(queue, now)
                self._forget_if_empty(queue)
        return found

    def checked(self, items: Sequence[Item], now: int) -> None:
        """Continue after a check. Deliveries that must not start have been removed."""
        for webhook_id, count in Counter(item.webhook_id for item in items).items():
            if queue := self.webhooks.get(webhook_id):
                queue.is_checking, queue.unused_checks = False, count
                self.place(queue, now)

    def remove(self, item: Item, *, is_settled: bool) -> None:
        """Remove a delivery that will not be sent. `is_settled`: its row already has the final state."""
        if queue := self.webhooks.get(item.webhook_id):
            queue.discard(item)
            if not is_settled:
                queue.unsettled.add(item.id)
            self._forget_if_empty(queue)

    def next_to_start(self, now: int, moment: float) -> Item | None:
        """Take the next delivery that may start now."""
        while self._ring and self.in_flight < MAX_TOTAL_IN_FLIGHT:
            queue = self._ring.popleft()
            queue.is_placed = False
            item = self._startable(queue, now)
            if item is None:
                self._rest(queue, now)
            elif item.checked_at + FRESH_SECONDS < moment:
                self._ask_for_check(queue)
            elif self._at_host[queue.host] >= self.per_host:
                queue.is_placed = True
                self._waiting_for_host[queue.host].append(queue)
            else:
                queue.take(item, now)
                self.in_flight += 1
                item.host = queue.host
                self._at_host[item.host] += 1
                if queue.unused_checks < MAX_IN_FLIGHT and queue.has_waiting:
                    self._ask_for_check(queue)
                self.place(queue, now)
                return item
        return None

    def is_in_flight(self, item: Item) -> bool:
        queue = self.webhooks.get(item.webhook_id)
        return queue is not None and item.id in queue.in_flight

    def end(self, item: Item) -> WebhookQueue:
        """Free the slots of a request that has ended. The delivery stays unsettled until `settle`."""
        queue = self.webhooks[item.webhook_id]
        del queue.in_flight[item.id]
        if item.source is Source.LANES and item.repo_id in queue.lanes:
            queue.lanes[item.repo_id].is_busy = False
        self.in_flight -= 1
        self._at_host[item.host] -= 1
        if not self._at_host[item.host]:
            del self._at_host[item.host]
        return queue

    def settle(self, delivery_ids: Iterable[tuple[str, str]], now: int) -> None:
        """Note that the outcomes of deliveries, given as (webhook, id), have been stored."""
        for webhook_id, delivery_id in delivery_ids:
            if queue := self.webhooks.get(webhook_id):
                queue.unsettled.discard(delivery_id)
                self.place(queue, now)
                self._forget_if_empty(queue)

    def place(self, queue: WebhookQueue, now: int) -> None:
        """Put a webhook into the ring if it has something to start and is not there already."""
        if queue.is_placed:
            return
        if self._startable(queue, now) is None:
            self._rest(queue, now)
        else:
            queue.is_placed = True
            self._ring.append(queue)

    def due(self, now: int) -> None:
        """Place the webhooks whose time has come, and those for which their host has a slot again."""
        if now < self._looked_at:
            self._start_timers_again(now)
        self._looked_at = now
        while self._timers and self._timers[0][0] <= now:
            _, webhook_id = heapq.heappop(self._timers)
            self._timer_at.pop(webhook_id, None)
            if queue := self.webhooks.get(webhook_id):
                self.place(queue, now)
            elif webhook_id in self.unloaded:
                self.read_again(webhook_id)
        for host in list(self._waiting_for_host):
            self.release_host(host, now)

    def _start_timers_again(self, now: int) -> None:
        """The clock was set back, and waits that were computed before may be far too long."""
        self._timers.clear()
        self._timer_at.clear()
        for queue in list(self.webhooks.values()):
            self.place(queue, now)
        for webhook_id in list(self.unloaded):
            self.read_again(webhook_id)

    def release_host(self, host: str, now: int) -> None:
        """Place webhooks that wait for the free slots of a host."""
        waiting = self._waiting_for_host.get(host, deque())
        for _ in range(min(self.per_host - self._at_host[host], len(waiting))):
            queue = waiting.popleft()
            queue.is_placed = False
            self.place(queue, now)
        if not waiting:
            self._waiting_for_host.pop(host, None)

    def next_time(self) -> int | None:
        return self._timers[0][0] if self._timers else None

    def _new_queue(self, webhook_id: str) -> WebhookQueue:
        is_leaving = bool(self.leaving) and shard_of(webhook_id) in self.leaving
        queue = self.webhooks[webhook_id] = WebhookQueue(webhook_id, is_leaving, self.sizes)
        return queue

    def _startable(self, queue: WebhookQueue, now: int) -> Item | None:
        each = MAX_IN_FLIGHT if self.in_flight < MAX_TOTAL_IN_FLIGHT // 2 else 1
        return queue.first(now) if len(queue.in_flight) < queue.limit(now, each) else None

    def _rest(self, queue: WebhookQueue, now: int) -> None:
        """Nothing to start: read more rows, or wait until something is due."""
        if self.webhooks.get(queue.id) is not queue:
            # Its shard was released.
            return
        is_idle = not queue.unsettled and not queue.is_checking
        if queue.is_used_up(now):
            self.unread[queue.id] = None
            if is_idle and len(self.webhooks) + len(self.unread) > self.max_read:
                # Not all fit into memory, so they take turns.
                del self.webhooks[queue.id]
                return
        at = queue.next_time(now)
        if at is None:
            return
        if is_idle and at > now + UNLOADED_AFTER and queue.id not in self.unread:
            del self.webhooks[queue.id]
            self.unloaded[queue.id] = at
        if not now < self._timer_at.get(queue.id, now) <= at:
            self._timer_at[queue.id] = at
            heapq.heappush(self._timers, (at, queue.id))
            self.has_earlier_time |= self._timers[0] == (at, queue.id)

    def _ask_for_check(self, queue: WebhookQueue) -> None:
        if not queue.is_checking:
            queue.is_checking = True
            self._to_check.append(queue)

    def _forget_if_empty(self, queue: WebhookQueue) -> None:
        is_known = self.webhooks.get(queue.id) is queue
        if is_known and queue.is_empty and not queue.is_checking and queue.id not in self.unread:
            del self.webhooks[queue.id]
