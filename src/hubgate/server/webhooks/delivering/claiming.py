"""Taking deliveries under a lease: fair between webhooks, few at a time for each."""

import secrets
from dataclasses import dataclass

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store
from hubgate.server.webhooks.delivering.outcome import delay
from hubgate.server.webhooks.model import BREAKS_AFTER, HOLDS_LANE, LEASE, PER_WEBHOOK

LOST_AT_ONCE = 500


@dataclass(frozen=True)
class Claim:
    delivery_id: str
    webhook_id: str
    lease_token: str
    # Ours until then.
    until: int


async def claim(webhooks: Webhooks, most: int) -> list[Claim]:
    now = webhooks.clock()

    async def unit(tx: Tx) -> list[Claim]:
        found: list[Claim] = []
        for row in await store.due_webhooks(tx, now, most):
            if len(found) >= most:
                break
            found += await _claim_for(tx, row["id"], now, most - len(found))
        return found

    return await webhooks.db.write_long(unit)


async def _claim_for(tx: Tx, webhook_id: str, now: int, most: int) -> list[Claim]:
    turn = await store.take_turn(tx, webhook_id, now)
    if turn is None:
        return []
    # A breaker that was open lets one through to see.
    cap = 1 if turn["failures"] >= BREAKS_AFTER else PER_WEBHOOK
    room = min(cap - await store.in_the_air(tx, webhook_id), most)
    held_since = now - HOLDS_LANE if turn["ordered"] else 0
    ids = await store.ready(tx, webhook_id, now, held_since, room) if room > 0 else []
    token, until = secrets.token_hex(12), now + LEASE
    await store.lease(tx, ids, token, until)
    if len(ids) == most and most < cap:
        # More of it may be ready; somebody comes back for them.
        await store.replan(tx, webhook_id)
    else:
        # What waits for a lane or for room is looked at again when one of these has ended.
        await store.plan_next(tx, webhook_id, now)
    return [Claim(delivery_id, webhook_id, token, until) for delivery_id in ids]


async def release_lost(webhooks: Webhooks) -> int:
    now = webhooks.clock()
    again = now + (delay(0, 0.5) or 0)
    return await webhooks.db.write_long(lambda tx: store.release_lost(tx, now, again, LOST_AT_ONCE))
