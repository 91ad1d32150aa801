"""Starts requests and decides what follows from their outcomes, in memory. The deliverer's loops do the I/O.

When a request ends, the next one of its webhook starts at once; the result is stored later, together with others.
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hubgate.server import failpoint
from hubgate.server.clock import SECOND
from hubgate.server.errors import Unprocessable
from hubgate.server.secret import CannotOpen
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.queue import Queue
from hubgate.server.webhooks.delivering.recording import Batch
from hubgate.server.webhooks.delivering.results_store import Result
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, WebhookQueue
from hubgate.server.webhooks.delivering.windows_store import Checked
from hubgate.server.webhooks.health import WELL, after_failure
from hubgate.server.webhooks.model import ENABLED, FORBIDDEN, RETRYING, SKIPPED, STORED
from hubgate.server.webhooks.requests.outcome import GONE, Try, Verdict, judge
from hubgate.server.webhooks.requests.request import Prepared, WebhookSettings, prepare, unusable
from hubgate.server.webhooks.requests.sending import Request, Sender

log = logging.getLogger("hubgate.deliver")

# Nothing starts while this many results wait to be stored.
MAX_UNSTORED = 1024
MAX_PREPARED = 10_000
# How long a delivery waits if its address has no free slot.
NO_SLOT_WAIT = 2 * SECOND


@dataclass(eq=False)
class Dispatch:
    webhooks: Webhooks
    # Called when there is something to check, to store or to read.
    on_work: Callable[[], None]
    # Called when the earliest due time becomes earlier.
    on_earlier_time: Callable[[], None]
    # Asked before requests start, with the monotonic time.
    may_start: Callable[[float], bool]
    silence_seconds: float | None = None
    # Another process has taken over: nothing starts any more.
    is_void: bool = False
    queue: Queue = field(default_factory=Queue)
    batch: Batch = field(default_factory=Batch)
    # Of webhooks that may have left memory.
    _prepared: dict[str, Prepared] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sender = Sender(self.webhooks, self._on_ended, self.silence_seconds)

    def pump(self) -> None:
        """Start all requests that may start now."""
        now = self.webhooks.clock()
        if not self.is_void and self.may_start(time.monotonic()):
            while len(self.batch) < MAX_UNSTORED:
                item = self.queue.next_to_start(now, time.monotonic())
                if item is None:
                    break
                prepared = self.queue.webhooks[item.webhook_id].prepared
                assert prepared is not None, "set by the check"  # noqa: S101
                self.sender.start(item, prepared)
        if self.queue.has_unchecked or self.queue.unread:
            self.on_work()
        if self.queue.has_earlier_time:
            self.queue.has_earlier_time = False
            self.on_earlier_time()

    def apply_check(self, items: Sequence[Item], found: Mapping[str, Checked], moment: float) -> None:
        """Apply a check that began at the monotonic time `moment`. Deliveries that no longer wait are not found."""
        for item in items:
            checked = found.get(item.id)
            if self.queue.is_in_flight(item):
                # Started since then, as the check before allowed.
                continue
            if checked is None:
                self.queue.remove(item, is_settled=True)
            elif checked.settings.state != ENABLED:
                if item.webhook_id in self.queue.webhooks:
                    # It may have been enabled since the check.
                    self.queue.read_again(item.webhook_id)
                self.queue.drop(item.webhook_id)
            elif checked.settings.url is None:
                self._end_unsent(item, STORED, "")
            elif not checked.may_go or checked.body is None:
                self._end_unsent(item, SKIPPED, FORBIDDEN)
            elif queue := self.queue.webhooks.get(item.webhook_id):
                item.checked_at, item.body, item.depth = moment, checked.body, checked.depth
                self._apply_settings(queue, checked.settings)
        self.queue.checked(items, self.webhooks.clock())
        self.pump()

    def hand_over(self, items: Iterable[Item], settings: Mapping[str, WebhookSettings]) -> None:
        """Queue deliveries that were just stored. Those that have been checked need the settings of their webhooks."""
        self.queue.hand_over(items, self.webhooks.clock())
        for webhook_id, of_webhook in settings.items():
            if queue := self.queue.webhooks.get(webhook_id):
                self._apply_settings(queue, of_webhook)
        self.pump()

    def _apply_settings(self, queue: WebhookQueue, settings: WebhookSettings) -> None:
        if queue.health is None or queue.resets < settings.resets:
            queue.health, queue.resets = settings.health, settings.resets
        if queue.prepared is not None and settings.version < queue.prepared.version:
            # From a slow check: a fan-out has read later settings since it began.
            return
        queue.ordered = bool(settings.ordered)
        if queue.prepared is None or queue.prepared.version != settings.version:
            prepared = self._prepared.pop(queue.id, None)
            if prepared is None or prepared.version != settings.version:
                prepared = self._prepare(queue.id, settings)
            # The least recently used is first.
            self._prepared[queue.id] = queue.prepared = prepared
            if len(self._prepared) > MAX_PREPARED:
                del self._prepared[next(iter(self._prepared))]
        queue.host = queue.prepared.host

    def _prepare(self, webhook_id: str, settings: WebhookSettings) -> Prepared:
        try:
            return prepare(self.webhooks.secret, webhook_id, settings, self.webhooks.tunnels.links)
        except (CannotOpen, Unprocessable, ValueError):
            log.exception("webhook %s cannot be sent to: its secret or its URL cannot be used", webhook_id)
            return unusable(webhook_id, settings)

    def _end_unsent(self, item: Item, state: str, reason: str) -> None:
        self.batch.unsent.append((item.webhook_id, item.id, state, reason))
        self.queue.remove(item, is_settled=False)
        self.on_work()

    def _on_ended(self, request: Request, attempt: Try | None) -> None:
        now, item = self.webhooks.clock(), request.item
        queue = self.queue.end(item)
        if attempt is None:
            # Not sent: the address has no free slot, or the request was aborted.
            queue.put_back(item, now + int(NO_SLOT_WAIT * (0.5 + random.random())))  # noqa: S311 (spreads load)
        else:
            failpoint.hit("deliver-after-send")
            self._conclude(queue, request, attempt, now)
            self.on_work()
        self.queue.release_host(item.host, now)
        self.queue.place(queue, now)
        self.pump()

    def _conclude(self, queue: WebhookQueue, request: Request, attempt: Try, now: int) -> None:
        item = request.item
        chance = random.random()  # noqa: S311 (spreads retries, hides nothing)
        verdict = judge(attempt, self.webhooks.pace.backoff, item.attempts, now, chance)
        item.attempts += 1
        item.tried_at = item.tried_at or now
        self.batch.results.append(
            Result(
                id=item.id,
                webhook_id=item.webhook_id,
                is_test=item.is_test,
                number=item.attempts,
                state=verdict.state,
                status=attempt.status,
                due_at=verdict.due_at,
                tried_at=item.tried_at,
                ended_at=now,
                at=attempt.at,
                url=request.outgoing.url,
                signature=request.outgoing.signature,
                duration_ms=attempt.duration_ms,
                error=attempt.error,
                response=attempt.response,
            )
        )
        self._set_health(queue, request, attempt, now)
        self._queue_again(queue, item, verdict)

    def _set_health(self, queue: WebhookQueue, request: Request, attempt: Try, now: int) -> None:
        """Update the health of the webhook. Attempts to an old URL and failed tests do not count."""
        before = queue.health or WELL
        if (queue.prepared and queue.prepared.url != request.outgoing.url) or (
            request.item.is_test and not attempt.arrived
        ):
            return
        longest = int(self.webhooks.pace.deadline_seconds * SECOND)
        queue.health = WELL if attempt.arrived else after_failure(before, now, request.at, 2 * longest)
        if queue.health != before or attempt.status == GONE:
            self.batch.healths[queue.id] = (queue.resets, queue.health)
        if attempt.status == GONE:
            # Storing the result suspends the webhook.
            self.queue.drop(queue.id)

    def _queue_again(self, queue: WebhookQueue, item: Item, verdict: Verdict) -> None:
        lane = item.repo_id if item.source is Source.LANES else None
        failed = queue.blockers.setdefault(item.repo_id, {}) if queue.ordered and not item.is_replay else {}
        failed.pop(item.id, None)
        if verdict.state == RETRYING and verdict.due_at is not None:
            failed[item.id] = item.tried_at or 0
            item.due_at, item.body, item.checked_at = verdict.due_at, b"", 0.0
            queue.add_retry(item)
        if lane is not None:
            queue.free(lane)
