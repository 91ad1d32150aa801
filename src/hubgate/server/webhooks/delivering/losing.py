"""Leases whose holders died or froze: each counts as a failed try, and none ends its delivery."""

import random

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.delivering.leases import store as leases
from hubgate.server.webhooks.delivering.outcome import delay
from hubgate.server.webhooks.delivering.results import store as results
from hubgate.server.webhooks.delivering.results.store import Attempt

INTERRUPTED = "The hub was interrupted before it knew the outcome."


async def release_lost(webhooks: Webhooks) -> int:
    now, pace = webhooks.clock(), webhooks.pace

    async def unit(tx: Tx) -> int:
        found = await leases.lost(tx, now, pace.lease, results.MOST)
        if not found:
            return 0
        await results.hold(tx, {row["webhook_id"] for row in found})
        # A result may have been written down between the two statements.
        held = await results.held_leases(tx, [row["id"] for row in found])
        lost = [row for row in found if row["id"] in held and held[row["id"]]["lease_token"] == row["lease_token"]]
        tries = {row["id"]: held[row["id"]]["attempts"] for row in lost}
        await results.add_attempts(
            tx, [Attempt(one, before + 1, now, "", "", None, 0, INTERRUPTED, b"") for one, before in tries.items()]
        )
        await leases.release(tx, [(row["id"], row["lease_token"], now + _wait(tries[row["id"]])) for row in lost], now)
        await queue.replan(tx, {row["webhook_id"] for row in lost}, now)
        return len(lost)

    def _wait(before: int) -> int:
        last = len(pace.backoff) - 1
        return delay(pace.backoff, min(before, last), random.random()) or 0  # noqa: S311 (spreads retries)

    if not await webhooks.db.read(lambda tx: leases.lost(tx, now, pace.lease, 1)):
        return 0
    return await webhooks.db.write_long(unit)
