"""Statements that take deliveries under a lease. Rows of webhooks are locked first, in the order of their ids, by
everyone who changes several of them: two processes never wait for each other.
"""

from collections.abc import Sequence

from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import placed, places
from hubgate.server.webhooks.delivering.store import ALIVE
from hubgate.server.webhooks.entitled.store import MAY_KNOW
from hubgate.server.webhooks.model import BREAK_LONGEST, BREAKS_AFTER, ENABLED, RETRYING

MOST_WEBHOOKS = 64
# Of a webhook's backlog, for those that need not wait for their lane.
LOOKED_AT = 200

# A breaker that is open for longer than any ever is was closed by a clock that has been set back since.
_DUE = f"""
    next_due_at <= :now AND state = '{ENABLED}'
    AND (closed_until <= :now OR closed_until > CAST(:now AS bigint) + {BREAK_LONGEST})
"""


async def is_any_due(db: Database, now: int) -> bool:
    return await db.one(f"SELECT 1 FROM webhooks WHERE {_DUE} LIMIT 1", {"now": now}) is not None


async def due_webhooks(tx: Tx, now: int, most: int) -> Sequence[Row]:
    """id, ordered. Whoever was served goes to the end of the line: a backlog does not keep the others waiting."""
    sql = f"SELECT id, ordered FROM webhooks WHERE {_DUE} ORDER BY next_due_at LIMIT :most"
    return await tx.all(sql, {"now": now, "most": most})


async def take_turns(tx: Tx, webhook_ids: Sequence[str], token: str, now: int) -> None:
    """Whoever was faster has them; nobody else claims for the ones we got until this unit ends."""
    await tx.exec_many(
        f"UPDATE webhooks SET turn = :token WHERE id = :id AND {_DUE}",
        [{"id": webhook_id, "token": token, "now": now} for webhook_id in sorted(webhook_ids)],
    )


# How many more may leave: none of a webhook whose turn went to another, and one at a time where a breaker was open.
_ROOM = f"""
    SELECT CASE WHEN x.cap > x.leased THEN x.cap - x.leased ELSE 0 END FROM (
        SELECT CASE WHEN COALESCE(w.turn, '') <> :token THEN 0 WHEN w.failures >= {BREAKS_AFTER} THEN 1
                ELSE CAST(:each AS bigint) END AS cap,
            (SELECT count(*) FROM deliveries f WHERE f.webhook_id = w.id AND f.lease_until IS NOT NULL) AS leased
        FROM webhooks w WHERE w.id = :id
    ) x
"""


async def lease(tx: Tx, held_since: dict[str, int], token: str, until: int, each: int, now: int) -> None:
    """For each webhook what may leave now. The next of a lane waits until the first try of the one before has ended; of
    an ordered webhook also while that was tried after `held_since` and has not arrived.
    """
    await tx.exec_many(
        f"""
        UPDATE deliveries SET lease_token = :token, lease_until = :until WHERE id IN (
            SELECT c.id FROM (
                SELECT d.id, d.due_at, d.seq, d.repo_id, d.repo_seq, d.attempts, d.replay_of FROM deliveries d
                WHERE d.webhook_id = :id AND d.{ALIVE} AND d.due_at <= :now AND d.lease_until IS NULL
                ORDER BY d.due_at, d.seq LIMIT {LOOKED_AT}
            ) c
            WHERE c.attempts > 0 OR c.replay_of <> '' OR NOT EXISTS (
                SELECT 1 FROM deliveries p
                WHERE p.webhook_id = :id AND p.repo_id = c.repo_id AND p.repo_seq < c.repo_seq AND p.{ALIVE}
                    AND p.replay_of = '' AND (p.attempts = 0 OR p.tried_at > :held_since)
            )
            ORDER BY c.due_at, c.seq LIMIT ({_ROOM})
        )
        """,
        [
            {"id": webhook_id, "token": token, "until": until, "each": each, "now": now, "held_since": since}
            for webhook_id, since in held_since.items()
        ],
    )


_KNOWN = MAY_KNOW.replace(":private", "COALESCE(r.private, e.private)").replace(
    ":owner_id", "COALESCE(r.owner_id, e.owner_id)"
)


async def leased(tx: Tx, webhook_ids: Sequence[str], token: str, until: int) -> Sequence[Row]:
    """All that sending needs; `known` is 0 where the owner of the webhook may not know of it now."""
    return await tx.all(
        f"""
        SELECT d.id, d.webhook_id, d.state, d.repo_seq, d.attempts, d.depth, d.is_test,
            COALESCE(d.body, e.body) AS body, w.url, w.secret, w.old_secret, w.old_secret_until, w.private_key,
            CASE WHEN d.is_test = 1 OR {_KNOWN} THEN 1 ELSE 0 END AS known
        FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
        LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
        WHERE d.webhook_id IN ({places("id", MOST_WEBHOOKS)}) AND d.lease_until = :until AND d.lease_token = :token
        ORDER BY d.webhook_id, d.due_at, d.seq
        """,
        {**placed("id", webhook_ids, MOST_WEBHOOKS), "until": until, "token": token},
    )


async def end_unsent(tx: Tx, rows: Sequence[tuple[str, str, str]], token: str, now: int) -> None:
    """What will not go out, as (delivery, state, reason)."""
    await tx.exec_many(
        """
        UPDATE deliveries SET state = :state, reason = :reason, due_at = NULL, ended_at = :now, lease_token = NULL,
            lease_until = NULL
        WHERE id = :id AND lease_token = :token
        """,
        [{"id": one, "state": state, "reason": reason, "token": token, "now": now} for one, state, reason in rows],
    )


async def plan_after_claim(tx: Tx, soon: dict[str, int], token: str, now: int) -> None:
    """When to look at each again. What is due and was not taken waits for something in the air, whose end plans anew;
    `soon` is when to look even if that never comes.
    """
    waiting = f"d.webhook_id = :id AND d.{ALIVE} AND d.lease_until IS NULL"
    await tx.exec_many(
        f"""
        UPDATE webhooks SET next_due_at = (
            SELECT min(x.moment) FROM (
                SELECT min(d.due_at) AS moment FROM deliveries d WHERE {waiting} AND d.due_at > :now
                UNION ALL
                SELECT CAST(:soon AS bigint) WHERE EXISTS (
                    SELECT 1 FROM deliveries d WHERE {waiting} AND d.due_at <= :now
                )
            ) x
        ) WHERE id = :id AND turn = :token
        """,
        [{"id": webhook_id, "soon": at, "token": token, "now": now} for webhook_id, at in sorted(soon.items())],
    )


async def is_still_wanted(db: Database, delivery_id: str, token: str) -> bool:
    """Whether it is ours and its webhook enabled."""
    row = await db.one(
        f"""
        SELECT 1 FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
        WHERE d.id = :id AND d.lease_token = :token AND w.state = '{ENABLED}'
        """,
        {"id": delivery_id, "token": token},
    )
    return row is not None


async def lost(tx: Tx, now: int, lease_lasts: int, most: int) -> Sequence[Row]:
    """id, webhook_id, lease_token where a lease ran out, or was taken by a clock that has been set back since."""
    return await tx.all(
        """
        SELECT id, webhook_id, lease_token FROM deliveries
        WHERE lease_until IS NOT NULL AND (lease_until <= :now OR lease_until > :too_far) LIMIT :most
        """,
        {"now": now, "too_far": now + 2 * lease_lasts, "most": most},
    )


async def release(tx: Tx, rows: Sequence[tuple[str, str, int]], now: int) -> None:
    """Those as (delivery, lease token, when due again): a failed try of each, and the end of none."""
    await tx.exec_many(
        f"""
        UPDATE deliveries SET lease_token = NULL, lease_until = NULL, attempts = attempts + 1, state = '{RETRYING}',
            due_at = :due_at, tried_at = COALESCE(tried_at, CAST(:now AS bigint))
        WHERE id = :id AND lease_token = :token
        """,
        [{"id": delivery_id, "token": token, "due_at": due_at, "now": now} for delivery_id, token, due_at in rows],
    )
