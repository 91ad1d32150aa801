"""Sending one claimed delivery and writing down what came of it."""

import asyncio
import random
import time
from dataclasses import dataclass

from hubgate.server import failpoint
from hubgate.server.clock import SECOND
from hubgate.server.egress.exchange import Answer
from hubgate.server.egress.resolve import NoRoom, NotReached
from hubgate.server.errors import Unprocessable
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks import telling
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store
from hubgate.server.webhooks.delivering.claiming import Claim
from hubgate.server.webhooks.delivering.outcome import GONE, Try, judge
from hubgate.server.webhooks.delivering.request import Outgoing, outgoing
from hubgate.server.webhooks.managing import store as managing_store
from hubgate.server.webhooks.model import (
    BREAK_FIRST,
    BREAK_LONGEST,
    DEADLINE_SECONDS,
    ENABLED,
    FORBIDDEN,
    SKIPPED,
    SUSPENDED,
    SUSPENDED_AFTER,
)

MOST_READ = 64 * 1024
# For a delivery that found no room at its address. It was not tried, so it waits shortly.
NO_ROOM_WAIT = SECOND


@dataclass(frozen=True)
class Sender:
    """Where no answer came from an address that only this hub could have tried, blocked, refused and timed out are
    written down alike and after the same time, `silence_seconds`: whoever asks for deliveries learns nothing of the
    network around the hub (attack W18).
    """

    webhooks: Webhooks
    silence_seconds: float = DEADLINE_SECONDS

    async def deliver(self, claimed: Claim) -> None:
        row = await self._to_send(claimed)
        if row is None:
            return
        at = self.webhooks.clock()
        out = outgoing(self.webhooks.secret, claimed.delivery_id, row, at)
        try:
            tried = await self._tried(out, at)
        except NoRoom:
            await self._give_back(claimed)
            return
        failpoint.hit("deliver-after-send")
        await self._note(claimed, row, out, tried)

    async def _to_send(self, claimed: Claim) -> Row | None:
        """None where nothing goes out, which is written down then."""

        async def unit(tx: Tx) -> Row | None:
            row = await store.to_send(tx, claimed.delivery_id, claimed.lease_token)
            if row is None:
                return None
            if row["state"] != ENABLED and not row["is_test"]:
                await self._skip(tx, claimed, row["state"])
                return None
            known = row["is_test"] or await store.may_know(tx, row["webhook_id"], row["owner_id"], row["private"])
            if not known or row["url"] is None or row["body"] is None:
                await self._skip(tx, claimed, FORBIDDEN)
                return None
            return row

        return await self.webhooks.db.write(unit)

    async def _skip(self, tx: Tx, claimed: Claim, reason: str) -> None:
        webhook_id = await store.give_back(tx, claimed.delivery_id, claimed.lease_token, SKIPPED, reason, None)
        if webhook_id is not None:
            await store.replan(tx, webhook_id)

    async def _give_back(self, claimed: Claim) -> None:
        """Unsent, for a while: that its address is busy with others is no failure of its."""
        due_at = self.webhooks.clock() + int(NO_ROOM_WAIT * (1 + random.random()))  # noqa: S311 (spreads, hides nothing)

        async def unit(tx: Tx) -> None:
            webhook_id = await store.give_back(tx, claimed.delivery_id, claimed.lease_token, "", "", due_at)
            if webhook_id is not None:
                await store.replan(tx, webhook_id)

        await self.webhooks.db.write(unit)

    async def _tried(self, out: Outgoing, at: int) -> Try:
        began, deadline = time.monotonic(), DEADLINE_SECONDS
        answer: Answer | None = None
        is_public = True
        try:
            answer = await self.webhooks.egress.post(out.url, out.headers, out.body, seconds=deadline, cap=MOST_READ)
        except NoRoom:
            raise
        except NotReached as failure:
            is_public = failure.is_public
        except (Unprocessable, OSError):
            is_public = False
        if not is_public:
            await asyncio.sleep(max(0.0, began + self.silence_seconds - time.monotonic()))
        milliseconds = int((time.monotonic() - began) * 1000)
        # In whole seconds, where the rest would say which of them it was.
        return Try(at, milliseconds if is_public else milliseconds // 1000 * 1000, answer, out.secret)

    async def _note(self, claimed: Claim, row: Row, out: Outgoing, tried: Try) -> None:
        now = self.webhooks.clock()
        verdict = judge(tried, row["attempts"], now, random.random())  # noqa: S311 (spreads retries, hides nothing)

        async def unit(tx: Tx) -> None:
            ended = await store.end_try(
                tx, claimed.delivery_id, claimed.lease_token, verdict.state, "", tried.status, verdict.due_at, now
            )
            if ended is None:
                return
            await store.note_try(tx, claimed.delivery_id, ended["attempts"], out, tried)
            if tried.arrived:
                await store.note_success(tx, claimed.webhook_id)
            elif not row["is_test"]:
                await self._note_failure(tx, claimed.webhook_id, tried, now)

        await self.webhooks.db.write(unit)

    async def _note_failure(self, tx: Tx, webhook_id: str, tried: Try, now: int) -> None:
        """Ten in a row open the breaker; 410, or five days without a success, suspend."""
        failing = await store.note_failure(tx, webhook_id, BREAK_FIRST, BREAK_LONGEST, now)
        if failing is None:
            return
        lasted = now - failing["failing_since"]
        if tried.status == GONE or lasted >= SUSPENDED_AFTER:
            if await managing_store.suspend(tx, webhook_id, now):
                waiting = await store.skip_all(tx, webhook_id, SUSPENDED, now)
                await telling.suspended(tx, self.webhooks, webhook_id, waiting)
        elif lasted >= SUSPENDED_AFTER // 2 and failing["warned_at"] is None:
            await store.set_warned(tx, webhook_id, now)
            await telling.half_way(tx, self.webhooks, webhook_id, failing["failing_since"], tried.status)
