"""One step of the fan-out: a chunk of watchers of each repo's first event, each chunk in one unit.

A chunk is bounded, so one event with a hundred thousand watchers takes bounded memory, and the cursor is written with
the chunk: a kill in the middle neither loses nor doubles a delivery.
"""

from dataclasses import dataclass

import msgspec

from hubgate.server import failpoint
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as deliveries
from hubgate.server.webhooks.delivering.store import NewDelivery
from hubgate.server.webhooks.fanout import store
from hubgate.server.webhooks.fanout.store import Unfanned
from hubgate.server.webhooks.model import DEEPEST, ENABLED, LOOP, PENDING, QUOTA, SKIPPED, STORED

EVENTS_AT_ONCE = 64
WATCHERS_AT_ONCE = 500


class _Named(msgspec.Struct):
    name: str


class _Body(msgspec.Struct):
    repo: _Named


@dataclass(frozen=True)
class FanOut:
    webhooks: Webhooks

    async def step(self) -> bool:
        """Whether there is more to do at once."""
        db = self.webhooks.db
        found = await db.read_long(lambda tx: store.unfanned(tx, EVENTS_AT_ONCE))
        for event in found:
            event_id = event.id
            await db.write_long(lambda tx, event_id=event_id: self._fan(tx, event_id))  # type: ignore[misc]
            failpoint.hit("fan-out-after-chunk")
        return bool(found)

    async def _fan(self, tx: Tx, event_id: str) -> None:
        now = self.webhooks.clock()
        event = await store.hold(tx, event_id)
        if event is None:
            return
        name = msgspec.json.decode(event.body, type=_Body).repo.name
        if not event.fan_cursor:
            kind = await store.owner_kind(tx, event.owner_id)
            await store.bind(tx, event, kind, name.partition("/")[0].lower(), name.lower())
        chunk = await store.last_watcher(tx, event, WATCHERS_AT_ONCE)
        if chunk is None:
            await store.finish(tx, event_id, now)
            return
        last, watchers = chunk
        domain = "discussion" if event.scope.startswith("discussion") else "repo"
        reader = await store.repo_now(tx, event.repo_id)
        told = await store.trigger(tx, event, last, domain, reader, self.webhooks.quota, now)
        await deliveries.add(tx, [_delivery(event, name, row, now) for row in told])
        if watchers < WATCHERS_AT_ONCE:
            await store.finish(tx, event_id, now)
        else:
            await store.advance(tx, event_id, last)


def _delivery(event: Unfanned, name: str, webhook: Row, now: int) -> NewDelivery:
    state, reason = _state(event, webhook)
    return NewDelivery(
        id=new_id(now),
        webhook_id=webhook["id"],
        event_id=event.id,
        seq=webhook["last_seq"],
        repo_id=event.repo_id,
        repo_seq=event.repo_seq,
        repo_type=event.repo_type,
        repo_name=name,
        scope=event.scope,
        action=event.action,
        depth=event.depth,
        state=state,
        reason=reason,
        due_at=now if state == PENDING else None,
        created_at=now,
    )


def _state(event: Unfanned, webhook: Row) -> tuple[str, str]:
    if webhook["state"] != ENABLED:
        return SKIPPED, str(webhook["state"])
    if event.depth >= DEEPEST:
        return SKIPPED, LOOP
    if not webhook["within"]:
        return SKIPPED, QUOTA
    return (STORED, "") if webhook["url"] is None else (PENDING, "")
