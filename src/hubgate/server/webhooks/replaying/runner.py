"""Runs replays of many deliveries, in the process that sends for their webhooks.

Copies are queued a few at a time, so that memory, the log and the time until a cancellation takes effect do not depend
on the size of a replay. Position and copies are stored in one unit: whichever process continues queues each delivery
once, and sends waiting copies under the same id. The rate is enforced when requests start.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from hubgate.server.ids import new_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks import deliveries_store as deliveries
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.deliveries_store import NewDelivery
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.model import PENDING, SIZES, STORED
from hubgate.server.webhooks.replaying import store
from hubgate.server.webhooks.replaying.model import Replay
from hubgate.server.webhooks.shards.ownership import TakenOver
from hubgate.server.webhooks.shards.store import shard_of

log = logging.getLogger("hubgate.deliver")

# Between two steps, while replays run and otherwise.
BUSY_SECONDS, IDLE_SECONDS = 0.1, 1.0
# Copies that wait at most, fewer than a webhook has in memory, so that tests and single replays are not delayed; more
# are queued when fewer than half of them wait.
MAX_WAITING = SIZES.replays * 3 // 4
# Deliveries that one statement considers: most of them may be in other states.
SPAN = 2000
_ROUNDING = 1e-6
_COPIED = ("event_id", "repo_id", "repo_seq", "repo_type", "repo_name", "scope", "action", "depth", "is_test", "body")


class _Ended(Exception):
    """The webhook is not enabled, or the replay was cancelled or continued by another process."""


@dataclass(eq=False)
class ReplayRunner:
    webhooks: Webhooks
    deliverer: Deliverer
    # The monotonic time up to which the copies of a replay that its rate allows have been queued.
    _queued_through: dict[str, float] = field(default_factory=dict)

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            is_busy = False
            try:
                is_busy = await self.step()
            except TakenOver:
                # The deliverer starts over.
                pass
            except Exception:
                log.exception("replays could not be continued, which will be retried")
            try:
                async with asyncio.timeout(BUSY_SECONDS if is_busy else IDLE_SECONDS):
                    await stop.wait()
            except TimeoutError:
                continue

    async def step(self) -> bool:
        """Queue more copies of each running replay of this process; False if there are no replays."""
        if not self.deliverer.shards or not await store.is_any_running(self.webhooks.db):
            self._queued_through.clear()
            return False
        first: dict[str, Replay] = {}
        for replay in await self.webhooks.db.read_long(store.running):
            if shard_of(replay.webhook_id) in self.deliverer.shards:
                # The replays of a webhook run one after another.
                first.setdefault(replay.webhook_id, replay)
        for replay in first.values():
            await self._continue(replay)
        return bool(first)

    async def _continue(self, replay: Replay) -> None:
        if replay.is_queued:
            if replay.waiting == 0:
                await self._finish(replay)
        elif replay.waiting <= MAX_WAITING // 2 and (limit := self._limit(replay)) > 0:
            try:
                with contextlib.suppress(_Ended):
                    await self._queue_some(replay, limit)
            finally:
                # Also after an error: the unit may have been committed.
                self.deliverer.read_again([replay.webhook_id])

    def _limit(self, replay: Replay) -> int:
        """How many copies to queue now. The rate applies here too: copies of a webhook without a URL are never sent."""
        now = time.monotonic()
        began = max(self._queued_through.get(replay.id, now - 1 / replay.rate), now - 1.0)
        limit = max(min(MAX_WAITING - replay.waiting, int((now - began) * replay.rate + _ROUNDING)), 0)
        self._queued_through[replay.id] = began + limit / replay.rate
        return limit

    async def _queue_some(self, replay: Replay, limit: int) -> None:
        if replay.picked is None:
            through = min(replay.position + SPAN, replay.last_position)
            rows = await self.webhooks.db.read_long(lambda tx: store.select(tx, replay, through, limit))
            position = rows[-1]["seq"] if len(rows) == limit else through
        else:
            selection = replay.selection
            position = min(replay.position + limit, replay.last_position)
            picked = selection.picked[replay.position : position]
            found = await self.webhooks.db.read_long(
                lambda tx: store.select_picked(tx, replay.webhook_id, picked, selection)
            )
            # An app may have taken the webhook over: the copy of a test would not show that it is older (attack W41).
            rows = [row for row in found if row["may_go"]]
        await self.webhooks.db.write_long(lambda tx: self._store(tx, replay, rows, position))

    async def _store(self, tx: Tx, replay: Replay, rows: Sequence[Row], position: int) -> None:
        now = self.webhooks.clock()
        await self.deliverer.ownership.require(tx)
        webhook = await store.reserve_numbers(tx, replay.webhook_id, len(rows))
        if webhook is None or not await store.advance(tx, replay, position, len(rows)):
            raise _Ended
        is_pull, first = webhook["url"] is None, webhook["last_seq"] - len(rows) + 1
        await deliveries.add(
            tx,
            [
                NewDelivery(
                    id=new_id(now),
                    webhook_id=replay.webhook_id,
                    seq=first + place,
                    state=STORED if is_pull else PENDING,
                    reason="",
                    due_at=None if is_pull else now,
                    created_at=now,
                    replay_of=deliveries.replay_of(row["id"], replay.id),
                    **{name: row[name] for name in _COPIED},
                )
                for place, row in enumerate(rows)
            ],
        )

    async def _finish(self, replay: Replay) -> None:
        async def unit(tx: Tx) -> None:
            await self.deliverer.ownership.require(tx)
            await store.finish(tx, replay.id, self.webhooks.clock())

        await self.webhooks.db.write(unit)
        self._queued_through.pop(replay.id, None)
