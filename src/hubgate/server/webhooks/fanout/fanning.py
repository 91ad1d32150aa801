"""One step of the fan-out: a bounded number of watchers of the first events of some repos, in one unit.

One event may have a hundred thousand watchers: it takes many steps and bounded memory, and how far it has come is
written with its deliveries, so that a kill in the middle neither loses nor doubles one. Repos take turns; the events of
one repo are fanned out in order, each after the one before is done.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import msgspec

from hubgate.server import failpoint
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Value
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source
from hubgate.server.webhooks.fanout import store
from hubgate.server.webhooks.fanout.store import Called, Numbers, Unfanned
from hubgate.server.webhooks.model import ENABLED, LOOP, MAX_DEPTH, PENDING, QUOTA, SKIPPED, STORED
from hubgate.server.webhooks.shards.store import shard_of, wake, woken
from hubgate.server.webhooks.watches import store as watches

MAX_EVENTS = 64
WATCHERS_AT_ONCE = 500


class _Owner(msgspec.Struct):
    id: str


class _Named(msgspec.Struct):
    name: str
    owner: _Owner


class _Body(msgspec.Struct, rename="camel"):
    repo: _Named
    # Where a move led to. By now it may be elsewhere again.
    moved_to: _Named | None = None


class _Chunk(msgspec.Struct, frozen=True):
    event: Unfanned
    repo_name: str
    # Webhooks that are told, in order.
    told: list[str]
    # Where to go on; None where nobody is left.
    cursor: str | None

    @property
    def is_counted(self) -> bool:
        return self.event.depth < MAX_DEPTH

    @property
    def is_end_of_move(self) -> bool:
        return self.cursor is None and _is_move(self.event)


class _Step(msgspec.Struct, frozen=True):
    # The last repo of the step, and how many events to read in the next one.
    went_to: str
    events_at_once: int
    # New deliveries that this process takes over.
    items: list[Item]


class Handover(Protocol):
    """The deliverer of this process, which takes over new deliveries of its shards in memory."""

    # Shards whose deliveries it takes over.
    shards: set[int]
    exclusive: asyncio.Lock

    async def require_ownership(self, tx: Tx) -> None: ...
    def hand_over(self, items: Sequence[Item]) -> None: ...


@dataclass
class FanOut:
    webhooks: Webhooks
    # None: all new deliveries are left to the owners of their shards.
    deliverer: Handover | None = None
    _after_repo: str = field(default="", init=False)
    # As many as have watchers for one step: events read in vain are read again.
    _events_at_once: int = field(default=MAX_EVENTS, init=False)

    async def step(self) -> bool:
        """Fan out some events, and return whether there is more to do at once."""
        if not await store.is_any(self.webhooks.db):
            return False
        if self.deliverer is None:
            await self._fan_out(frozenset())
        else:
            async with self.deliverer.exclusive:
                self.deliverer.hand_over(await self._fan_out(frozenset(self.deliverer.shards)))
        return True

    async def _fan_out(self, owned: frozenset[int]) -> list[Item]:
        step = await self.webhooks.db.write_long(partial(self._unit, owned=owned))
        failpoint.hit("fan-out-after-chunk")
        self._after_repo, self._events_at_once = step.went_to, step.events_at_once
        return step.items

    async def _unit(self, tx: Tx, owned: frozenset[int]) -> _Step:
        now, limit = self.webhooks.clock(), self._events_at_once
        if self.deliverer is not None and owned:
            await self.deliverer.require_ownership(tx)
        events = await store.unfanned(tx, self._after_repo, limit)
        if not events:
            events = await store.unfanned(tx, "", limit)
        bodies = {event.id: msgspec.json.decode(event.body, type=_Body) for event in events}
        chunks = await _next_chunks(tx, await _with_names(tx, events, bodies), bodies, now)
        await store.advance(tx, [(chunk.event, chunk.cursor) for chunk in chunks], now)
        items = await self._add(tx, chunks, owned, now)
        # Watches of a name that a repo has left end with the event of its move.
        await watches.end_for_repos(tx, {chunk.event.repo_id for chunk in chunks if chunk.is_end_of_move})
        next_limit = max(limit // 2, 1) if len(chunks) < len(events) else min(limit * 2, MAX_EVENTS)
        return _Step(chunks[-1].event.repo_id if chunks else "", next_limit, items)

    async def _add(self, tx: Tx, chunks: list[_Chunk], owned: frozenset[int], now: int) -> list[Item]:
        """Add one delivery for each webhook of each chunk. Returns those to send that this process takes over."""
        counts: dict[str, Numbers] = defaultdict(Numbers)
        for chunk in chunks:
            for webhook_id in chunk.told:
                _count(counts[webhook_id], chunk)
        numbered = await store.number(tx, counts, now)
        so_far: dict[str, Numbers] = defaultdict(Numbers)
        rows: list[dict[str, Value]] = []
        for chunk in chunks:
            for webhook_id in chunk.told:
                # The webhook was deleted meanwhile if it has no number.
                if webhook_id in numbered:
                    _count(so_far[webhook_id], chunk)
                    webhook = numbered[webhook_id]
                    rows.append(self._row(chunk, webhook, counts[webhook_id], so_far[webhook_id], now))
        await store.add(tx, rows, now)
        pending = [row for row in rows if row["state"] == PENDING]
        elsewhere = {str(row["webhook_id"]) for row in pending if shard_of(str(row["webhook_id"])) not in owned}
        if elsewhere:
            await wake(tx, sorted(elsewhere), now)
        # Earlier deliveries of these are stored and not yet read: these are read together with them.
        later = await woken(tx, owned) if len(elsewhere) < len(pending) else set()
        return [_item(row) for row in pending if str(row["webhook_id"]) not in elsewhere | later]

    def _row(self, chunk: _Chunk, webhook: Row, total: Numbers, so_far: Numbers, now: int) -> dict[str, Value]:
        event = chunk.event
        state, reason = self._state(chunk, webhook, total, so_far)
        return {
            "id": new_id(now),
            "webhook_id": webhook["id"],
            "event_id": event.id,
            "seq": webhook["last_seq"] - total.count + so_far.count,
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

    def _state(self, chunk: _Chunk, webhook: Row, total: Numbers, so_far: Numbers) -> tuple[str, str]:
        # A loop first: what a suspension skipped is sent once it ends.
        if not chunk.is_counted:
            return SKIPPED, LOOP
        if webhook["state"] != ENABLED:
            return SKIPPED, webhook["state"]
        # Events of guests do not use up the quota of the others (attack O72).
        if chunk.event.guest:
            used = webhook["guest_quota_used"] - total.of_guests + so_far.of_guests
        else:
            used = webhook["quota_used"] - total.counted + so_far.counted
        if used > self.webhooks.quota:
            return SKIPPED, QUOTA
        return (STORED, "") if webhook["url"] is None else (PENDING, "")


def _count(numbers: Numbers, chunk: _Chunk) -> None:
    numbers.count += 1
    if chunk.is_counted and chunk.event.guest:
        numbers.of_guests += 1
    elif chunk.is_counted:
        numbers.counted += 1


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        id=row["id"],
        webhook_id=row["webhook_id"],
        repo_id=row["repo_id"],
        repo_seq=row["repo_seq"],
        attempts=0,
        source=Source.LANES,
        due_at=row["due_at"],
    )


async def _with_names(tx: Tx, events: list[Unfanned], bodies: dict[str, _Body]) -> list[Unfanned]:
    """Those whose names are bound. Of each repo up to the next event that somebody may wait for by name: what came
    before that is not theirs to hear, so it is told of in an earlier step.
    """
    named = [
        Called(event, repo.owner.id, repo.name)
        for event in events
        for repo in (bodies[event.id].repo, bodies[event.id].moved_to)
        if repo is not None and event.fan_cursor is None
    ]
    waiting = await store.wait_for_a_name(tx, named)
    bound: dict[str, Unfanned] = {}
    begun, ended = set[str](), set[str]()
    for event in events:
        if event.id in waiting and event.repo_id in begun:
            ended.add(event.repo_id)
        if event.repo_id not in ended:
            bound[event.id] = event
            begun.add(event.repo_id)
            if _is_move(event):
                # What comes after it is not for those who watched a name that it left.
                ended.add(event.repo_id)
    for called in named:
        if called.event.id in waiting and called.event.id in bound:
            await store.bind(tx, called)
    return list(bound.values())


async def _next_chunks(tx: Tx, events: list[Unfanned], bodies: dict[str, _Body], now: int) -> list[_Chunk]:
    """Of the first events. Repos get the same share of a step; the next event of one waits for the end of the last."""
    share = max(WATCHERS_AT_ONCE // max(len({event.repo_id for event in events}), 1), 1)
    moved = {event.id: body.owner.id for event in events if (body := bodies[event.id].moved_to)}
    found = await store.watchers(tx, events, moved, share, now)
    chunks: list[_Chunk] = []
    room, unfinished = WATCHERS_AT_ONCE, set()
    for event in events:
        if event.repo_id in unfinished:
            continue
        watchers = found[event.id]
        cursor = watchers[-1]["id"] if len(watchers) == share else None
        if cursor is not None:
            unfinished.add(event.repo_id)
        chunks.append(_Chunk(event, bodies[event.id].repo.name, [row["id"] for row in watchers if row["told"]], cursor))
        room -= len(watchers)
        if room <= 0:
            break
    return chunks


def _is_move(event: Unfanned) -> bool:
    return (event.scope, event.action) == ("repo", "move")
