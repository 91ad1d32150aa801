"""Fan-out in steps: one unit adds the deliveries of the first events of some repos, for a bounded number of watchers.

An event may have a hundred thousand watchers. Its progress is stored with its deliveries, so that a crash neither loses
nor duplicates one. Repos take turns; the events of a repo are fanned out one after the other.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial

import msgspec

from hubgate.server import failpoint
from hubgate.server.events.payload import EventNames
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import Value
from hubgate.server.webhooks import deliveries_store
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source
from hubgate.server.webhooks.fanout import store
from hubgate.server.webhooks.fanout.store import Counts, Reserved, UnfannedEvent
from hubgate.server.webhooks.model import ENABLED, LOOP, MAX_DEPTH, PENDING, QUOTA, SKIPPED, STORED
from hubgate.server.webhooks.requests.request import WebhookSettings
from hubgate.server.webhooks.shards.store import shard_of, wake, woken
from hubgate.server.webhooks.watches import binding_store, watchers_store
from hubgate.server.webhooks.watches import store as watches

MAX_EVENTS = 64
WATCHERS_AT_ONCE = 500


class _Chunk(msgspec.Struct, frozen=True):
    """The next webhooks that get a delivery of an event."""

    event: UnfannedEvent
    repo_name: str
    webhook_ids: list[str]
    # The last watcher that was read; None if there are no more.
    cursor: str | None

    @property
    def is_loop(self) -> bool:
        return self.event.depth >= MAX_DEPTH


class _Step(msgspec.Struct, frozen=True):
    # The repo after which the next step begins, and how many events it reads.
    last_repo: str
    events_at_once: int
    # New deliveries of shards that this process owns, and the settings of their webhooks.
    items: list[Item]
    settings: dict[str, WebhookSettings]


@dataclass
class FanOut:
    webhooks: Webhooks
    # New deliveries of its shards are handed over in memory. Without it, all are left to the owners of their shards.
    deliverer: Deliverer | None = None
    _after_repo: str = field(default="", init=False)
    # Follows the number of watchers: events that a step reads and does not reach are read again.
    _events_at_once: int = field(default=MAX_EVENTS, init=False)
    # The webhooks of the last unit, whether it was committed or not.
    _attempted: list[str] = field(default_factory=list, init=False)

    async def step(self) -> bool:
        """Fan out some events; False if there are none."""
        if not await store.has_unfanned(self.webhooks.db):
            return False
        if self.deliverer is None:
            await self._fan_out(frozenset())
            return True
        async with self.deliverer.exclusive:
            try:
                step = await self._fan_out(frozenset(self.deliverer.shards))
            except BaseException:
                # The unit may have been committed.
                self.deliverer.read_again(self._attempted)
                raise
            self.deliverer.hand_over(step.items, step.settings)
        return True

    async def _fan_out(self, owned: frozenset[int]) -> _Step:
        step = await self.webhooks.db.write_long(partial(self._unit, owned=owned))
        failpoint.hit("fan-out-after-chunk")
        self._after_repo, self._events_at_once = step.last_repo, step.events_at_once
        return step

    async def _unit(self, tx: Tx, owned: frozenset[int]) -> _Step:
        now, moment, limit = self.webhooks.clock(), time.monotonic(), self._events_at_once
        if self.deliverer is not None and owned:
            await self.deliverer.ownership.require(tx)
        events = await store.unfanned(tx, self._after_repo, limit)
        if not events:
            events = await store.unfanned(tx, "", limit)
        bodies = {event.id: msgspec.json.decode(event.body, type=EventNames) for event in events}
        chunks = await _next_chunks(tx, await _bind_watches(tx, events, bodies), bodies, now)
        await store.advance(tx, [(chunk.event, chunk.cursor) for chunk in chunks], now)
        items, settings = await self._add(tx, chunks, owned, now, moment)
        # After a move has been fanned out, watches of the repo's old name end.
        await watches.end_for_repos(
            tx, {chunk.event.repo_id for chunk in chunks if chunk.cursor is None and chunk.event.is_move}
        )
        next_limit = max(limit // 2, 1) if len(chunks) < len(events) else min(limit * 2, MAX_EVENTS)
        return _Step(chunks[-1].event.repo_id if chunks else "", next_limit, items, settings)

    async def _add(
        self, tx: Tx, chunks: list[_Chunk], owned: frozenset[int], now: int, moment: float
    ) -> tuple[list[Item], dict[str, WebhookSettings]]:
        """Add one delivery for each webhook of each chunk. Returns those to send whose shards this process owns, as
        checked at the monotonic time `moment`: state and permission have been read since then.
        """
        counts: dict[str, Counts] = defaultdict(Counts)
        recipients = [(chunk, webhook_id) for chunk in chunks for webhook_id in chunk.webhook_ids]
        for chunk, webhook_id in recipients:
            _count(counts[webhook_id], chunk)
        reserved = await store.reserve(tx, counts, now)
        so_far: dict[str, Counts] = defaultdict(Counts)
        rows: list[dict[str, Value]] = []
        items: list[Item] = []
        for chunk, webhook_id in recipients:
            if webhook := reserved.get(webhook_id):
                _count(so_far[webhook_id], chunk)
                row = self._row(chunk, webhook, counts[webhook_id], so_far[webhook_id], now)
                rows.append(row)
                if row["state"] == PENDING:
                    items.append(_item(str(row["id"]), chunk.event, webhook, now, moment))
        self._attempted = list(reserved)
        await deliveries_store.add_fanned_out(tx, rows, now)
        if rows:
            tx.signal(Signal.STREAMS)
        handed_over = {item.webhook_id for item in items}
        if elsewhere := {webhook_id for webhook_id in handed_over if shard_of(webhook_id) not in owned}:
            await wake(tx, sorted(elsewhere), now)
            handed_over -= elsewhere
        if handed_over:
            # Earlier deliveries of these are stored and not yet read: these are read together with them.
            handed_over -= await woken(tx, owned)
        settings = {webhook_id: reserved[webhook_id].settings for webhook_id in handed_over}
        return [item for item in items if item.webhook_id in handed_over], settings

    def _row(self, chunk: _Chunk, webhook: Reserved, counts: Counts, so_far: Counts, now: int) -> dict[str, Value]:
        event = chunk.event
        state, reason = self._state(chunk, webhook, counts, so_far)
        return {
            "id": new_id(now),
            "webhook_id": webhook.id,
            "event_id": event.id,
            "seq": webhook.last_seq - counts.total + so_far.total,
            "repo_id": event.repo_id,
            "repo_seq": event.repo_seq,
            "repo_type": event.repo_type,
            "repo_name": chunk.repo_name,
            "scope": event.scope,
            "action": event.action,
            "depth": event.depth,
            "state": state,
            "reason": reason,
            "due_at": now if state == PENDING else None,
            "ended_at": None if state == PENDING else now,
        }

    def _state(self, chunk: _Chunk, webhook: Reserved, counts: Counts, so_far: Counts) -> tuple[str, str]:
        # Before the webhook's state: deliveries that a suspension skipped are queued again later, loops are not.
        if chunk.is_loop:
            return SKIPPED, LOOP
        if webhook.settings.state != ENABLED:
            return SKIPPED, webhook.settings.state
        # Guests have a separate quota, so that they cannot use up that of other users (attack O72).
        if chunk.event.guest:
            used = webhook.guest_quota_used - counts.guest_quota + so_far.guest_quota
        else:
            used = webhook.quota_used - counts.quota + so_far.quota
        if used > self.webhooks.quota:
            return SKIPPED, QUOTA
        return (STORED, "") if webhook.settings.url is None else (PENDING, "")


def _count(counts: Counts, chunk: _Chunk) -> None:
    counts.total += 1
    counts.quota += not chunk.is_loop and not chunk.event.guest
    counts.guest_quota += not chunk.is_loop and bool(chunk.event.guest)


def _item(delivery_id: str, event: UnfannedEvent, webhook: Reserved, now: int, moment: float) -> Item:
    item = Item(delivery_id, webhook.id, event.repo_id, event.repo_seq, attempts=0, source=Source.LANES, due_at=now)
    if not webhook.is_catching_up:
        item.checked_at, item.body, item.depth = moment, event.body, event.depth
    return item


async def _bind_watches(tx: Tx, events: list[UnfannedEvent], bodies: dict[str, EventNames]) -> list[UnfannedEvent]:
    """Bind watches to the owners and repos that these events name, and return the events of this step.

    Of a repo, the step ends before an event that binds watches, which do not apply to the events before it, and after a
    move, because watches of the old name do not apply to the events after it.
    """
    named = [
        binding_store.NamedRepo(event.id, event.created_at, event.repo_id, event.repo_type, repo.owner.id, repo.name)
        for event in events
        for repo in (bodies[event.id].repo, bodies[event.id].moved_to)
        if repo is not None and event.fan_cursor is None
    ]
    binding = await binding_store.events_to_bind(tx, named)
    selected: dict[str, UnfannedEvent] = {}
    started, ended = set[str](), set[str]()
    for event in events:
        if event.id in binding and event.repo_id in started:
            ended.add(event.repo_id)
        if event.repo_id not in ended:
            selected[event.id] = event
            started.add(event.repo_id)
            if event.is_move:
                ended.add(event.repo_id)
    for repo in named:
        if repo.event_id in binding and repo.event_id in selected:
            await binding_store.bind(tx, repo)
    return list(selected.values())


async def _next_chunks(tx: Tx, events: list[UnfannedEvent], bodies: dict[str, EventNames], now: int) -> list[_Chunk]:
    """The next watchers of the first events. Repos get equal shares of a step; an event follows when the one before it
    has no more watchers.
    """
    share = max(WATCHERS_AT_ONCE // max(len({event.repo_id for event in events}), 1), 1)
    moved = {event.id: body.owner.id for event in events if (body := bodies[event.id].moved_to)}
    found = await watchers_store.watchers(tx, events, moved, share, now)
    chunks: list[_Chunk] = []
    room, unfinished = WATCHERS_AT_ONCE, set()
    for event in events:
        if event.repo_id in unfinished:
            continue
        watchers = found[event.id]
        cursor = watchers[-1][0] if len(watchers) == share else None
        if cursor is not None:
            unfinished.add(event.repo_id)
        webhook_ids = [webhook_id for webhook_id, gets_delivery in watchers if gets_delivery]
        chunks.append(_Chunk(event, bodies[event.id].repo.name, webhook_ids, cursor))
        room -= len(watchers)
        if room <= 0:
            break
    return chunks
