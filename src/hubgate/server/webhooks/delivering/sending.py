"""Sending one claimed delivery."""

import asyncio
import random
import time

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.clock import SECOND
from hubgate.server.egress.connection import HttpResponse
from hubgate.server.egress.resolve import NoFreeSlot, Unreachable
from hubgate.server.errors import Unprocessable
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.claiming import Claim
from hubgate.server.webhooks.delivering.leases import store
from hubgate.server.webhooks.delivering.outcome import Try
from hubgate.server.webhooks.delivering.request import Outgoing, outgoing

MAX_READ = 64 * 1024
# For a delivery that found no room at its address. It was not tried, so it waits shortly.
NO_ROOM_WAIT = 2 * SECOND
# What was claimed longer ago is looked at again: its webhook may have been switched off since.
FRESH_SECONDS = 0.1


class Tried(Struct, frozen=True):
    """A try was made; what it came to is to be written down."""

    claim: Claim
    out: Outgoing
    tried: Try


class Unsent(Struct, frozen=True):
    """It was not sent, or nobody knows: given back without counting a try, to be sent at `due_at` by whoever comes."""

    claim: Claim
    due_at: int


class Sender(Struct, frozen=True):
    """Where no answer came from an address that only this hub could have tried, blocked, refused and timed out are
    written down alike and after the same time, `silence_seconds`: whoever asks for deliveries learns nothing of the
    network around the hub (attack W18).
    """

    webhooks: Webhooks
    # The whole deadline where it is not given.
    silence_seconds: float | None = None

    async def send(self, claim: Claim) -> Tried | Unsent:
        webhooks = self.webhooks
        fresh = time.monotonic() < claim.taken + FRESH_SECONDS
        if not fresh and not await store.is_still_wanted(webhooks.db, claim.delivery_id, claim.lease_token):
            return Unsent(claim, webhooks.clock())
        at = webhooks.clock()
        if not claim.may_begin(webhooks.pace, at):
            return Unsent(claim, at)
        out = outgoing(webhooks.secret, claim.delivery_id, claim.row, at)
        failpoint.hit("deliver-after-claim")
        try:
            tried = await self._tried(out, at)
        except NoFreeSlot:
            # That its address is busy with others is no failure of its.
            wait = int(NO_ROOM_WAIT * (0.5 + random.random()))  # noqa: S311 (spreads, hides nothing)
            return Unsent(claim, webhooks.clock() + wait)
        failpoint.hit("deliver-after-send")
        return Tried(claim, out, tried)

    async def _tried(self, out: Outgoing, at: int) -> Try:
        began, deadline = time.monotonic(), self.webhooks.pace.deadline_seconds
        answer: HttpResponse | None = None
        is_public = True
        try:
            answer = await self.webhooks.egress.post(out.url, out.headers, out.body, seconds=deadline, cap=MAX_READ)
        except NoFreeSlot:
            raise
        except Unreachable as failure:
            is_public = failure.is_public
        except (Unprocessable, OSError):
            is_public = False
        took = time.monotonic() - began
        if not is_public:
            silence = deadline if self.silence_seconds is None else self.silence_seconds
            await asyncio.sleep(max(0.0, silence - took))
            # To the millisecond, it would say which of them it was.
            took = silence
        return Try(at, int(took * 1000), answer, out.secret)
