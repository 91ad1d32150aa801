"""Taking deliveries under a lease: fair between webhooks, few at a time for each."""

import secrets
import time
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.clock import SECOND
from hubgate.server.storage.database import Row, Tx, Unit
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.leases import store
from hubgate.server.webhooks.delivering.leases.store import Turn
from hubgate.server.webhooks.model import (
    BREAKER_OPENS_AFTER,
    FORBIDDEN,
    LANE_BLOCKED_FOR,
    MAX_IN_FLIGHT,
    SKIPPED,
    STORED,
    Pace,
)

_NEVER = 2**62
# How often an ordered webhook is asked whether a lane has been held for long enough.
_ORDERED_AGAIN = SECOND


class Claim(Struct, frozen=True):
    """A delivery that is ours to send, with all that takes."""

    delivery_id: str
    webhook_id: str
    lease_token: str
    # Ours until then, by the clock that everyone shares.
    until: int
    # When it was taken, by a clock that nobody sets.
    taken: float
    row: Row

    def may_begin(self, pace: Pace, now: int) -> bool:
        """Whether a try that begins now ends within the lease. A process that was frozen, or whose clock was set back,
        knows by one of the two clocks.
        """
        lasts = pace.lease / SECOND - pace.deadline_seconds
        return time.monotonic() < self.taken + lasts and now < self.until - int(pace.deadline_seconds * SECOND)


async def claim(webhooks: Webhooks, max_webhooks: int, each: int = MAX_IN_FLIGHT) -> list[Claim]:
    """At most `each` at a time of every webhook, in one unit for all of them."""
    return await webhooks.db.write_long(claiming(webhooks, max_webhooks, each))


def claiming(webhooks: Webhooks, max_webhooks: int, each: int) -> Unit[list[Claim]]:
    taken, now = time.monotonic(), webhooks.clock()
    token, until = secrets.token_hex(12), now + webhooks.pace.lease

    async def unit(tx: Tx) -> list[Claim]:
        due = await store.due_webhooks(tx, now, min(max_webhooks, store.MAX_WEBHOOKS))
        if not due:
            return []
        turns = {row["id"]: _turn(row, each, now) for row in due}
        found = await store.ready(tx, list(turns.values()), now)
        claimed, freed = await taken_of(tx, found)
        counts = Counter(row["webhook_id"] for row in found)
        crowded = await store.plan_after_claim(
            tx, turns.values(), _again(turns, freed, webhooks.pace, now), counts, now
        )
        if crowded:
            # Of a repo with a long backlog only the first may leave, and what waits behind it hides the other repos
            # and what need not wait.
            some = {one: turn for one, turn in turns.items() if one in crowded}
            more, freed_too = await taken_of(tx, await store.beside_and_first(tx, list(some.values()), now))
            freed |= freed_too
            await store.plan_after_claim(tx, some.values(), _again(some, freed, webhooks.pace, now), {}, now)
            claimed += more
        return claimed

    async def taken_of(tx: Tx, found: Sequence[Row]) -> tuple[list[Claim], set[str]]:
        """The claims, and the webhooks with something that will not go out."""
        ours = await store.lease(tx, [row["id"] for row in found], token, until)
        rows = [row for row in found if row["id"] in ours]
        unsent = _unsent(rows)
        await store.end_unsent(tx, list(unsent.values()), token, now)
        sent = [row for row in rows if row["id"] not in unsent]
        freed = {row["webhook_id"] for row in rows if row["id"] in unsent}
        return [Claim(row["id"], row["webhook_id"], token, until, taken, row) for row in sent], freed

    return unit


def _turn(row: Row, each: int, now: int) -> Turn:
    """One at a time where a breaker was open."""
    cap = 1 if row["failures"] >= BREAKER_OPENS_AFTER else each
    return Turn(row["id"], cap, now - LANE_BLOCKED_FOR if row["ordered"] else _NEVER)


def _unsent(rows: Sequence[Row]) -> dict[str, tuple[str, str, str]]:
    """What may not go out now (attack W31), and what has nowhere to go since its webhook only keeps."""
    found: dict[str, tuple[str, str, str]] = {}
    for row in rows:
        if not row["known"] or row["body"] is None:
            found[row["id"]] = (row["id"], SKIPPED, FORBIDDEN)
        elif row["url"] is None:
            found[row["id"]] = (row["id"], STORED, "")
    return found


def _again(turns: dict[str, Turn], freed: set[str], pace: Pace, now: int) -> dict[str, int]:
    """When to look again at a webhook some of whose deliveries are due and had to wait."""
    return {
        one: now if one in freed else now + (pace.lease if turn.held_since == _NEVER else _ORDERED_AGAIN)
        for one, turn in turns.items()
    }
