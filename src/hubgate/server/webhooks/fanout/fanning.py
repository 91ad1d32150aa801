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
from hubgate.server.webhooks.fanout import store
from hubgate.server.webhooks.fanout.store import Unfanned
from hubgate.server.webhooks.model import DEEPEST

EVENTS_AT_ONCE = 64
WATCHERS_AT_ONCE = 500


class _Named(msgspec.Struct):
    name: str


class _Body(msgspec.Struct):
    repo: _Named


@dataclass(frozen=True)
class _Chunk:
    event: Unfanned
    repo_name: str
    # Webhooks that are told, in order.
    told: list[str]
    # Where to go on; None where nobody is left.
    cursor: str | None

    @property
    def is_counted(self) -> bool:
        return self.event.depth < DEEPEST


@dataclass
class FanOut:
    webhooks: Webhooks
    # Called when there are deliveries to send.
    on_told: Callable[[], None] = lambda: None
    _after_repo: str = field(default="", init=False)

    async def step(self) -> bool:
        """Whether there is more to do at once."""
        db = self.webhooks.db
        if not await store.is_any(db):
            return False
        self._after_repo = await db.write_long(lambda tx: self._fan(tx, self._after_repo))
        failpoint.hit("fan-out-after-chunk")
        self.on_told()
        return True

    async def _fan(self, tx: Tx, after_repo: str) -> str:
        """The repo it came to; empty where the next step begins with the first."""
        now = self.webhooks.clock()
        events = await store.unfanned(tx, after_repo, EVENTS_AT_ONCE)
        chunks: list[_Chunk] = []
        room, unfinished = WATCHERS_AT_ONCE, set()
        for event in events:
            if event.repo_id in unfinished:
                continue
            chunk, seen = await _next_chunk(tx, event, room)
            chunks.append(chunk)
            if chunk.cursor is not None:
                unfinished.add(event.repo_id)
            room -= seen
            if room <= 0:
                break
        await store.advance(tx, [(chunk.event, chunk.cursor) for chunk in chunks], now)
        await self._tell(tx, chunks, now)
        went_to = chunks[-1].event.repo_id if chunks else ""
        return "" if room > 0 and len(events) < EVENTS_AT_ONCE else went_to

    async def _tell(self, tx: Tx, chunks: list[_Chunk], now: int) -> None:
        counts: dict[str, tuple[int, int]] = {}
        rows: list[dict[str, Value]] = []
        # Backwards, so that each knows how many of its webhook come after it.
        for chunk in reversed(chunks):
            for webhook_id in chunk.told:
                later, counted_later = counts.get(webhook_id, (0, 0))
                rows.append({**_row(chunk, webhook_id, now), "later": later, "counted_later": counted_later})
                counts[webhook_id] = (later + 1, counted_later + int(chunk.is_counted))
        await store.number(tx, counts, now)
        await store.tell(tx, rows, self.webhooks.quota, now)


async def _next_chunk(tx: Tx, event: Unfanned, most: int) -> tuple[_Chunk, int]:
    """With the number of watchers looked at."""
    name = msgspec.json.decode(event.body, type=_Body).repo.name
    if event.fan_cursor is None:
        owner_key, repo_key = name.partition("/")[0].lower(), name.lower()
        if await store.waits_for_a_name(tx, event.owner_id, owner_key, repo_key):
            await store.bind(tx, event, owner_key, repo_key)
    domain = "discussion" if event.scope.startswith("discussion") else "repo"
    watchers = await store.watchers(tx, event, domain, most)
    told = [row["id"] for row in watchers if row["told"]]
    cursor = watchers[-1]["id"] if len(watchers) == most else None
    return _Chunk(event, name, told, cursor), len(watchers)


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
    }
