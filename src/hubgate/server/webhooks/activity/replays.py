"""Replays and test deliveries: queued like any other delivery, then awaited for a short time."""

import asyncio

import msgspec

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.errors import Conflict, Forbidden, NotFound
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import RefChange, Snapshot, body_of
from hubgate.server.ids import is_id, new_id
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks import deliveries_store as deliveries
from hubgate.server.webhooks.activity import store
from hubgate.server.webhooks.activity.delivery_log import NOT_FOUND
from hubgate.server.webhooks.activity.store import LoggedDelivery
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.deliveries_store import NewDelivery
from hubgate.server.webhooks.management.lifecycle import NOT_FOUND as NO_SUCH_WEBHOOK
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.model import ALIVE, ENABLED, NO_ID, OWNER_TYPES, PENDING, REPO_TYPES, STORED, Webhook
from hubgate.server.webhooks.shards.store import wake

WAIT_SECONDS = 20.0
_POLL_SECONDS = 0.1
_SAMPLE_OLD, _SAMPLE_NEW = "0" * 39 + "1", "0" * 39 + "2"


async def replay(webhooks: Webhooks, webhook: Webhook, delivery_id: str, visible: VisibleRepos | None = None) -> str:
    """Queue a copy of a delivery and return its id. The body is the original; URL and secret are the current ones, and
    permission to read the repo is checked again. `visible` limits an app to deliveries it may see.
    """
    now = webhooks.clock()
    new = new_id(now)

    async def unit(tx: Tx) -> None:
        row = await store.columns_to_replay(tx, webhook.id, delivery_id) if is_id(delivery_id) else None
        if row is None or (visible and await store.one(tx, webhook.id, delivery_id, now, visible) is None):
            raise NotFound(NOT_FOUND)
        if not row["may_read"]:
            raise Forbidden("This webhook may no longer report on that repo.")
        await _queue(tx, webhook, new, delivery_id, dict(_copied(row)), now)

    await webhooks.db.write(unit)
    return new


def _copied(row: object) -> list[tuple[str, object]]:
    names = ("event_id", "repo_id", "repo_seq", "repo_type", "repo_name", "scope", "action", "depth", "is_test", "body")
    return [(name, row[name]) for name in names]  # type: ignore[index]


async def queue_test(webhooks: Webhooks, stored: StoredWebhook) -> str:
    """Queue a test delivery and return its id. It reports an update of the watched repo that was updated last, or of an
    invented one.
    """
    now, webhook = webhooks.clock(), stored.webhook
    new = new_id(now)
    found = await webhooks.db.read_long(lambda tx: _newest_watched_repo(tx, webhook))
    sample = found or _sample(stored)
    change = {"updatedRefs": [RefChange("refs/heads/main", _SAMPLE_OLD, sample.head_sha or _SAMPLE_NEW)]}
    body = body_of(Kind.REPO_CONTENT, sample, change, webhooks.base_url)

    async def unit(tx: Tx) -> None:
        columns = {
            # A test has no event: the delivery's id is used instead of an event id.
            "event_id": new,
            "repo_id": sample.id,
            "repo_seq": 0,
            "repo_type": sample.type,
            "repo_name": sample.name,
            "scope": Kind.REPO_CONTENT.scope,
            "action": Kind.REPO_CONTENT.action,
            "depth": 0,
            "is_test": 1,
            "body": body,
        }
        await _queue(tx, webhook, new, "test", columns, now)

    await webhooks.db.write(unit)
    return new


async def _newest_watched_repo(tx: Tx, webhook: Webhook) -> Snapshot | None:
    row = await store.newest_repo(tx, webhook.id)
    if row is None:
        return None
    tags = msgspec.json.decode(row["tags"], type=list[str])
    name = f"{row['owner_name']}/{row['name']}"
    return Snapshot(row["id"], row["type"], name, row["owner_id"], bool(row["private"]), row["head_sha"], tags)


def _sample(stored: StoredWebhook) -> Snapshot:
    watch = stored.watched[0]
    name = f"{watch.name}/example" if watch.type in OWNER_TYPES else watch.name
    # Owners, and types that this hub does not have, are represented by a model.
    repo_type = watch.type if watch.type in REPO_TYPES else "model"
    return Snapshot(NO_ID, repo_type, name, NO_ID, False, _SAMPLE_NEW, ())


async def _queue(tx: Tx, webhook: Webhook, new: str, origin: str, columns: dict[str, object], now: int) -> None:
    reserved = await store.reserve_seq(tx, webhook.id)
    if reserved is None:
        raise NotFound(NO_SUCH_WEBHOOK)
    if reserved["state"] != ENABLED:
        raise Conflict(f"This webhook is {reserved['state']}. Enable it first.")
    is_pull = webhook.url is None
    if columns["is_test"]:
        # A test checks whether a receiver works again, so an open circuit breaker does not delay it.
        await store.allow_probe(tx, webhook.id, now)
    await deliveries.add(
        tx,
        [
            NewDelivery(
                id=new,
                webhook_id=webhook.id,
                seq=reserved["last_seq"],
                state=STORED if is_pull else PENDING,
                reason="",
                due_at=None if is_pull else now,
                created_at=now,
                replay_of=deliveries.replay_of(origin, new),
                **columns,  # type: ignore[arg-type]
            )
        ],
    )
    await wake(tx, [webhook.id], now)


async def await_result(
    webhooks: Webhooks, webhook: Webhook, delivery_id: str, seconds: float = WAIT_SECONDS
) -> LoggedDelivery | None:
    """Wait up to `seconds` for the first attempt of a delivery, and return the delivery; None if it does not exist."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        logged = await webhooks.db.read_long(lambda tx: store.one(tx, webhook.id, delivery_id, webhooks.clock()))
        if logged is None or logged.attempts > 0 or logged.state not in ALIVE:
            return logged
        if asyncio.get_running_loop().time() >= deadline:
            return logged
        await asyncio.sleep(_POLL_SECONDS)
