"""A hub with a long past: webhooks and finished deliveries of another user, which must not slow down new deliveries."""

from bench.sign_ins import create_user
from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import WebhookRequest

WEBHOOKS, PER_WEBHOOK = 100_000, 50
WEBHOOKS_PER_UNIT = 5_000
# Three hours ago: retention keeps the rows, and the hourly roll-up reads them once, when the hub starts.
AGE = 3 * 3600 * 1_000_000

_NUMBERS = """
    WITH RECURSIVE numbers(n) AS (
        SELECT CAST(:first AS bigint) UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < CAST(:end AS bigint)
    )
"""
# Ids are 24 hex digits; a decimal number of as many digits is one too, and sorts before the ids of this century.
_ID = "substr('000000000000000000000000' || CAST({} AS text), -24)"
_POSTGRES_ID = "lpad(CAST({} AS text), 24, '0')"
_WEBHOOKS = """
    {numbers} INSERT INTO webhooks (id, user_id, url, domains, private_key, public_key, ordered, state, last_seq,
        quota_from, quota_used, failures, closed_until, created_at)
    SELECT {webhook_id}, w.user_id, w.url, w.domains, w.private_key, w.public_key, 0, w.state,
        CAST(:per_webhook AS bigint), 0, 0, 0, 0, w.created_at
    FROM numbers, webhooks w WHERE w.id = :original
"""
_DELIVERIES = """
    {numbers}, places(place) AS (
        SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < CAST(:per_webhook AS bigint)
    )
    INSERT INTO deliveries (id, webhook_id, event_id, replay_of, seq, repo_id, repo_seq, repo_type, repo_name, scope,
        action, depth, is_test, state, reason, attempts, status, tried_at, created_at, ended_at, first_at, first_url,
        signature, first_status, duration_ms, error, response)
    SELECT {delivery_id}, {webhook_id}, 'past-' || place, '', place, 'past', place, 'model', 'past/past',
        'repo.content', 'update', 0, 0, 'delivered', '', 1, 200, CAST(:at AS bigint), CAST(:at AS bigint),
        CAST(:at AS bigint), CAST(:at AS bigint), 'http://past.example/hook', 'v1,x', 200, 1, '', NULL
    FROM numbers, places ORDER BY n, place
"""


async def fill(hub: Hub, *, is_local: bool) -> None:
    """Add 100,000 webhooks with 50 finished deliveries each. `is_local` says that the database is SQLite."""
    user = await create_user(hub, "past")
    settings = WebhookRequest(url="http://past.example/hook", watched=[("user", user.name)])
    original = await lifecycle.create(hub.webhooks, Owner(user_id=user.id), settings, SYSTEM)
    as_id = _ID if is_local else _POSTGRES_ID
    texts = {
        "numbers": _NUMBERS,
        "webhook_id": as_id.format("n"),
        "delivery_id": as_id.format(f"n * {PER_WEBHOOK} + place"),
    }
    for first in range(0, WEBHOOKS, WEBHOOKS_PER_UNIT):
        given: Params = {"first": first, "end": first + WEBHOOKS_PER_UNIT, "per_webhook": PER_WEBHOOK}

        async def unit(tx: Tx, given: Params = given) -> None:
            await tx.exec(_WEBHOOKS.format(**texts), {**given, "original": original.webhook.id})
            await tx.exec(_DELIVERIES.format(**texts), {**given, "at": hub.clock() - AGE})

        await hub.db.write_long(unit)
