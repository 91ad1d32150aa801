"""Leases whose holders died or froze: each counts as a failed try, and none ends its delivery."""

import random

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.delivering.leases import store as leases
from hubgate.server.webhooks.delivering.outcome import delay
from hubgate.server.webhooks.delivering.results import store as results
from hubgate.server.webhooks.delivering.results.store import Attempt
from hubgate.server.webhooks.model import ENABLED

INTERRUPTED = "The hub was interrupted before it knew the outcome."


async def release_lost(webhooks: Webhooks) -> int:
    """All of them: one process that died may have had thousands in the air."""
    now, pace = webhooks.clock(), webhooks.pace

    async def unit(tx: Tx) -> int:
        found = await leases.lost(tx, now, pace.lease, results.LIMIT)
        if not found:
            return 0
        webhooks_held = await results.hold(tx, {row["webhook_id"] for row in found})
        # A result may have been written down between the two statements.
        held = await results.held_leases(tx, [row["id"] for row in found])
        lost = [row for row in found if row["id"] in held and held[row["id"]]["lease_token"] == row["lease_token"]]
        tries = {row["id"]: held[row["id"]]["attempts"] for row in lost}
        await results.add_attempts(
            tx, [Attempt(one, before + 1, now, "", "", None, 0, INTERRUPTED, b"") for one, before in tries.items()]
        )
        await leases.release(tx, [(row["id"], row["lease_token"], now + _wait(tries[row["id"]])) for row in lost], now)
        for webhook_id, (state, *_) in webhooks_held.items():
            if state != ENABLED:
                # What was in the air when it was switched off, and came down only now, is skipped like the rest.
                await queue.skip_all(tx, webhook_id, state, now)
        await queue.replan(tx, {row["webhook_id"] for row in lost}, now)
        return len(lost)

    def _wait(before: int) -> int:
        last = len(pace.backoff) - 1
        return delay(pace.backoff, min(before, last), random.random()) or 0  # noqa: S311 (spreads retries)

    if not await webhooks.db.read(lambda tx: leases.lost(tx, now, pace.lease, 1)):
        return 0
    released = 0
    while some := await webhooks.db.write_long(unit):
        released += some
    return released
