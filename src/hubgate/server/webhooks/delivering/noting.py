"""Writing down what came of tries: many in one unit, each guarded by its lease."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from hubgate.server.storage.database import Tx, Unit
from hubgate.server.webhooks import notifications
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.delivering.outcome import GONE, Verdict, judge
from hubgate.server.webhooks.delivering.results import store
from hubgate.server.webhooks.delivering.results.health import WELL, Health, after_failure
from hubgate.server.webhooks.delivering.results.store import Attempt, End
from hubgate.server.webhooks.delivering.sending import Tried, Unsent
from hubgate.server.webhooks.management import store as managing_store
from hubgate.server.webhooks.model import DELIVERED, ENABLED, RETRYING, SKIPPED, SUSPENDED, SUSPENDED_AFTER

LIMIT = store.LIMIT
Result = Tried | Unsent


@dataclass
class _Fare:
    """How one webhook fares in this unit."""

    state: str
    url: str | None
    health: Health
    # A try that counts was made and failed; its receiver said that it is gone for good.
    failed: bool = False
    gone: bool = False
    # Of the last try that failed.
    status: int | None = None
    ends: list[End] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)


async def note(webhooks: Webhooks, results: Sequence[Result]) -> None:
    """Those whose lease was lost meanwhile leave no trace."""
    await webhooks.db.write_long(noting(webhooks, results))


def noting(webhooks: Webhooks, results: Sequence[Result]) -> Unit[None]:
    now = webhooks.clock()

    async def unit(tx: Tx) -> None:
        held_webhooks = await store.hold(tx, {result.claim.webhook_id for result in results})
        fares = {one: _Fare(*found) for one, found in held_webhooks.items()}
        held = await store.held_leases(tx, [result.claim.delivery_id for result in results])
        for result in results:
            claim = result.claim
            row = held.get(claim.delivery_id)
            # Not twice either, should one be handed in again after its outcome was unknown.
            if row is not None and row["lease_token"] == claim.lease_token and claim.webhook_id in fares:
                _judge(webhooks, fares[claim.webhook_id], result, row["attempts"], now)
        await store.add_attempts(tx, [attempt for fare in fares.values() for attempt in fare.attempts])
        await store.end_tries(tx, [end for fare in fares.values() for end in fare.ends], now)
        for webhook_id, fare in sorted(fares.items()):
            await _follow(tx, webhooks, webhook_id, fare, now)
        await store.set_health(tx, {webhook_id: fare.health for webhook_id, fare in fares.items()}, now)

    return unit


def _judge(webhooks: Webhooks, fare: _Fare, result: Result, before: int, now: int) -> None:
    claim = result.claim
    if isinstance(result, Unsent):
        state = claim.row["state"]
        fare.ends.append(_end(result, Verdict(state, result.due_at), fare.state, None, counted=0))
        return
    tried, out = result.tried, result.out
    chance = random.random()  # noqa: S311 (spreads retries, hides nothing)
    verdict = judge(tried, webhooks.pace.backoff, before, now, chance)
    if verdict.state != DELIVERED and out.url != fare.url:
        # The address it is to go to by now has not refused it.
        verdict = Verdict(RETRYING, now)
    fare.ends.append(_end(result, verdict, fare.state, tried.status, counted=1))
    fare.attempts.append(
        Attempt(
            delivery_id=claim.delivery_id,
            number=before + 1,
            at=tried.at,
            url=out.url,
            signature=out.signature,
            status=tried.status,
            duration_ms=tried.duration_ms,
            error=tried.error,
            response=tried.response,
        )
    )
    if fare.state == SUSPENDED or fare.gone or out.url != fare.url:
        # What was in the air then changes nothing of why; an address that is not its any more says nothing of the new.
        return
    if tried.arrived:
        fare.health, fare.status = WELL, None
    elif not claim.row["is_test"]:
        lease = webhooks.pace.lease
        fare.health = after_failure(fare.health, now, claim.until - lease, lease)
        fare.status = tried.status
        fare.failed, fare.gone = True, tried.status == GONE


def _end(result: Result, verdict: Verdict, webhook_state: str, status: int | None, *, counted: int) -> End:
    """Of a webhook that was switched off while it was in the air, what would be sent again is skipped."""
    state, reason, due_at = verdict.state, "", verdict.due_at
    if due_at is not None and webhook_state != ENABLED:
        state, reason, due_at = SKIPPED, webhook_state, None
    return End(result.claim.delivery_id, result.claim.lease_token, state, reason, status, due_at, counted)


async def _follow(tx: Tx, webhooks: Webhooks, webhook_id: str, fare: _Fare, now: int) -> None:
    """410, or five days without a success, suspend; half-way the owner is told."""
    if not fare.failed:
        return
    since = fare.health.failing_since
    lasted = 0 if since is None else now - since
    if fare.gone or lasted >= SUSPENDED_AFTER:
        if await managing_store.suspend(tx, webhook_id, now):
            await queue.skip_all(tx, webhook_id, SUSPENDED, now)
            # With the one that ended it: all that "re-enable and replay" sends.
            await notifications.notify_suspended(tx, webhooks, webhook_id, await queue.missed(tx, webhook_id, now))
    elif since is not None and lasted >= SUSPENDED_AFTER // 2 and fare.health.warned_at is None:
        fare.health = replace(fare.health, warned_at=now)
        await notifications.warn_half_way(tx, webhooks, webhook_id, since, fare.status)
