"""Starting, reading and cancelling replays of many deliveries."""

import msgspec

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.accounts.model import Owner
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.ids import is_id, new_id
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.activity.delivery_log import NOT_FOUND as NO_SUCH_DELIVERY
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management.lifecycle import lock_webhook
from hubgate.server.webhooks.model import ALIVE, ENABLED, Webhook
from hubgate.server.webhooks.replaying import store
from hubgate.server.webhooks.replaying.model import DEFAULT_RATE, DONE, MAX_RUNNING, RUNNING, Replay, Selection
from hubgate.server.webhooks.shards.store import wake

NOT_FOUND = "Replay not found."
LATEST = 20


async def count(webhooks: Webhooks, webhook: Webhook, selection: Selection) -> int:
    """How many deliveries a replay would send now."""
    now = webhooks.clock()
    row = await webhooks.db.read_long(lambda tx: store.count(tx, webhook.id, selection, now))
    return int(row["total"])


async def start(
    webhooks: Webhooks, owner: Owner, webhook: Webhook, selection: Selection, rate: int = DEFAULT_RATE
) -> Replay:
    """Store a replay, which the process that sends for this webhook then runs. Without deliveries it is done at once.

    URL and secret are those at the time of sending, and permission to read each repo is checked again then.
    """
    now = webhooks.clock()
    found = await webhooks.db.read_long(lambda tx: _select(tx, webhook.id, selection, rate, now))

    async def unit(tx: Tx) -> Replay:
        locked = await lock_webhook(tx, owner, webhook.id)
        if locked.state != ENABLED:
            raise Conflict(f"This webhook is {locked.state}. Enable it first.")
        if await store.has_backlog(tx, webhook.id):
            raise Conflict("Deliveries of this webhook are still being skipped or queued. Try again in a minute.")
        if await store.count_running(tx, webhook.id) >= MAX_RUNNING:
            raise Conflict(f"{MAX_RUNNING} replays of this webhook are running. Wait until one is done, or cancel one.")
        await store.add(tx, found)
        await wake(tx, [webhook.id], now)
        return found

    return await webhooks.db.write(unit)


async def _select(tx: Tx, webhook_id: str, selection: Selection, rate: int, now: int) -> Replay:
    picked = await _picked(tx, webhook_id, selection)
    if selection.picked:
        total, position, last = len(picked), 0, len(picked)
    else:
        row = await store.count(tx, webhook_id, selection, now)
        total, position, last = row["total"], (row["first_seq"] or 1) - 1, row["last_seq"] or 0
    return Replay(
        id=new_id(now),
        webhook_id=webhook_id,
        since=selection.since,
        states=" ".join(selection.states),
        picked=_json(picked) if selection.picked else None,
        visible=None if selection.visible is None else _json(selection.visible),
        rate=rate,
        state=RUNNING if total else DONE,
        total=total,
        queued=0,
        done=0,
        position=position,
        last_position=last,
        created_at=now,
        ended_at=None if total else now,
    )


async def _picked(tx: Tx, webhook_id: str, selection: Selection) -> list[str]:
    """The picked deliveries that can be replayed, in the order of their numbers."""
    rows = await store.select_picked(tx, webhook_id, selection.picked, selection)
    if len(rows) < len(selection.picked):
        raise NotFound(NO_SUCH_DELIVERY)
    return [row["id"] for row in rows if row["may_go"] and row["state"] not in ALIVE]


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


async def get(webhooks: Webhooks, webhook: Webhook, replay_id: str, visible: VisibleRepos | None = None) -> Replay:
    """A replay. With `visible`, the caller is an app, which sees only its own: the numbers of others reveal how much
    happened in repos that it may not see (attack W41).
    """
    return await webhooks.db.read_long(lambda tx: _one(tx, webhook.id, replay_id, visible))


async def latest(webhooks: Webhooks, webhook: Webhook, visible: VisibleRepos | None = None) -> list[Replay]:
    """The last replays of a webhook, newest first. `visible` as in `get`."""
    found = await webhooks.db.read_long(lambda tx: store.latest(tx, webhook.id, LATEST))
    return [replay for replay in found if _is_shown(replay, visible)]


def _is_shown(replay: Replay, visible: VisibleRepos | None) -> bool:
    if visible is None:
        return True
    starter = replay.selection.visible
    return starter is not None and starter.client_id == visible.client_id


async def cancel(
    webhooks: Webhooks, owner: Owner, webhook: Webhook, replay_id: str, visible: VisibleRepos | None = None
) -> Replay:
    """Cancel a running replay. One that has ended stays as it is. Requests in flight are not aborted. `visible` as in
    `get`.
    """
    now = webhooks.clock()

    async def unit(tx: Tx) -> Replay:
        await lock_webhook(tx, owner, webhook.id)
        found = await _one(tx, webhook.id, replay_id, visible)
        if found.state == RUNNING:
            await store.cancel(tx, found.id, now)
            await wake(tx, [webhook.id], now)
        return await _one(tx, webhook.id, replay_id, visible)

    return await webhooks.db.write(unit)


async def _one(tx: Tx, webhook_id: str, replay_id: str, visible: VisibleRepos | None) -> Replay:
    found = await store.one(tx, webhook_id, replay_id) if is_id(replay_id) else None
    if found is None or not _is_shown(found, visible):
        raise NotFound(NOT_FOUND)
    return found


async def skipped_while_disabled(webhooks: Webhooks, webhook: Webhook) -> tuple[int, int]:
    """The number of deliveries that were skipped because the webhook was disabled and have not been replayed, and the
    time of the first.
    """
    now = webhooks.clock()
    row = await webhooks.db.read_long(lambda tx: store.skipped_while_disabled(tx, webhook.id, now))
    return row["total"], row["since"] or 0
