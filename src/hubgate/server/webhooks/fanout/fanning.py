"""One step of the fan-out: a bounded number of watchers of the first events of some repos, in one unit.

One event may have a hundred thousand watchers: it takes many steps and bounded memory, and how far it has come is
written with its deliveries, so that a kill in the middle neither loses nor doubles one. Repos take turns; the events of
one repo are fanned out in order, each after the one before is done.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from hubgate.server import failpoint
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Value
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.results import store as results
from hubgate.server.webhooks.fanout import store
from hubgate.server.webhooks.fanout.store import Called, Numbers, Unfanned
from hubgate.server.webhooks.model import MAX_DEPTH
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


@dataclass
class FanOut:
    webhooks: Webhooks
    # Called when there are deliveries to send.
    on_told: Callable[[], None] = lambda: None
    _after_repo: str = field(default="", init=False)
    # As many as have watchers for one step: what is read in vain is read again.
    _events_at_once: int = field(default=MAX_EVENTS, init=False)

    async def step(self) -> bool:
        """Whether there is more to do at once."""
        db = self.webhooks.db
        if not await store.is_any(db):
            return False
        self._after_repo, self._events_at_once = await db.write_long(self._fan)
        failpoint.hit("fan-out-after-chunk")
        self.on_told()
        return True

    async def _fan(self, tx: Tx) -> tuple[str, int]:
        """The repo it came to, and how many events to look at in the next step."""
        now, limit = self.webhooks.clock(), self._events_at_once
        events = await store.unfanned(tx, self._after_repo, limit)
        if not events:
            events = await store.unfanned(tx, "", limit)
        bodies = {event.id: msgspec.json.decode(event.body, type=_Body) for event in events}
        chunks = await _next_chunks(tx, await _with_names(tx, events, bodies), bodies, now)
        await store.advance(tx, [(chunk.event, chunk.cursor) for chunk in chunks], now)
        await self._tell(tx, chunks, now)
        # Watchers of a name that a repo left are told of that, and of nothing that it does elsewhere.
        await watches.end_for_repos(tx, {chunk.event.repo_id for chunk in chunks if chunk.is_end_of_move})
        went_to = chunks[-1].event.repo_id if chunks else ""
        return went_to, max(limit // 2, 1) if len(chunks) < len(events) else min(limit * 2, MAX_EVENTS)

    async def _tell(self, tx: Tx, chunks: list[_Chunk], now: int) -> None:
        counts: dict[str, Numbers] = {}
        rows: list[dict[str, Value]] = []
        # Backwards, so that each knows how many of its webhook come after it.
        for chunk in reversed(chunks):
            for webhook_id in chunk.told:
                later, is_counted, guest = counts.get(webhook_id, Numbers()), int(chunk.is_counted), chunk.event.guest
                counted_later = later.of_guests if guest else later.counted
                rows.append({**_row(chunk, webhook_id, now), "later": later.all, "counted_later": counted_later})
                counts[webhook_id] = Numbers(
                    later.all + 1,
                    later.counted + (0 if guest else is_counted),
                    later.of_guests + (is_counted if guest else 0),
                )
        # In one order everywhere: see leases/store.py.
        await results.hold(tx, counts)
        await store.number(tx, counts, now)
        await store.tell(tx, rows, self.webhooks.quota, now)


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


def _row(chunk: _Chunk, webhook_id: str, now: int) -> dict[str, Value]:
    event = chunk.event
    return {
        "id": new_id(now),
        "webhook_id": webhook_id,
        "event_id": event.id,
        "repo_id": event.repo_id,
        "repo_seq": event.repo_seq,
        "repo_type": event.repo_type,
        "repo_name": chunk.repo_name,
        "scope": event.scope,
        "action": event.action,
        "depth": event.depth,
        "guest": event.guest,
    }
