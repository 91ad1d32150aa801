"""Statements that take deliveries under a lease. Rows of webhooks are locked first, in the order of their ids, by
everyone who changes several of them: two processes never wait for each other.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement
from hubgate.server.webhooks.delivering.store import ABOUT, ALIVE, MAY_GO
from hubgate.server.webhooks.model import BREAKER_LONGEST, ENABLED, RETRYING

MAX_WEBHOOKS = 128
# Of a webhook's backlog, and of its repos, for what need not wait.
LOOKED_AT = 200

# A breaker that would stay open for longer than BREAKER_LONGEST was opened before a clock was set back.
_DUE = f"""
    next_due_at <= :now AND state = '{ENABLED}'
    AND (closed_until <= :now OR closed_until > CAST(:now AS bigint) + {BREAKER_LONGEST})
"""


async def is_any_due(db: Database, now: int) -> bool:
    return await db.one(f"SELECT 1 FROM webhooks WHERE {_DUE} LIMIT 1", {"now": now}) is not None


async def due_webhooks(tx: Tx, now: int, limit: int) -> Sequence[Row]:
    """id, ordered, failures. Nobody else changes them until this unit ends; what somebody is changing now is left
    out. Whoever was served goes to the end of the line: a backlog does not keep the others waiting.
    """
    sql = f"""
        SELECT id, ordered, failures FROM webhooks WHERE {_DUE} ORDER BY next_due_at LIMIT :limit
        /*pg FOR NO KEY UPDATE SKIP LOCKED */
    """
    return await tx.all(sql, {"now": now, "limit": limit})


# What is in the air counts against the cap, whoever sent it.
_ROOM = """
    SELECT CASE WHEN :cap > count(*) THEN CAST(:cap AS bigint) - count(*) ELSE 0 END FROM deliveries f
    WHERE f.webhook_id = :webhook_id AND f.lease_until IS NOT NULL
"""
_WAITING = f"d.webhook_id = :webhook_id AND d.{ALIVE} AND d.lease_until IS NULL"
_DUE_NOW = f"{_WAITING} AND d.due_at <= :now"
_UNTRIED = f"{_WAITING} AND d.attempts = 0 AND d.replay_of = ''"
_CANDIDATE = "d.id, d.due_at, d.seq, d.repo_id, d.repo_seq, d.attempts, d.replay_of"


def _leaving(candidates: str) -> RowStatement:
    """Those that need not wait for their lane, as many as there is room for, with all that sending needs."""
    return RowStatement(
        f"""
        SELECT d.id, d.webhook_id, d.state, d.repo_seq, d.attempts, d.depth, d.is_test,
            COALESCE(d.body, e.body) AS body, w.url, w.secret, w.old_secret, w.old_secret_until, w.private_key,
            CASE WHEN {MAY_GO} THEN 1 ELSE 0 END AS known
        FROM (
            SELECT c.id FROM ({candidates}) c
            WHERE c.attempts > 0 OR c.replay_of <> '' OR NOT EXISTS (
                SELECT 1 FROM deliveries p
                WHERE p.webhook_id = :webhook_id AND p.repo_id = c.repo_id AND p.repo_seq < c.repo_seq AND p.{ALIVE}
                    AND p.attempts = 0 AND p.replay_of = ''
            ) AND NOT EXISTS (
                SELECT 1 FROM deliveries p
                WHERE p.webhook_id = :webhook_id AND p.repo_id = c.repo_id AND p.tried_at > :held_since
                    AND p.repo_seq < c.repo_seq AND p.{ALIVE} AND p.tried_at IS NOT NULL AND p.replay_of = ''
            )
            ORDER BY c.due_at, c.seq LIMIT ({_ROOM})
        ) leaving JOIN deliveries d ON d.id = leaving.id {ABOUT}
        ORDER BY d.due_at, d.seq
        """,
        {"webhook_id": "text", "cap": "bigint", "held_since": "bigint"},
    )


READY = _leaving(f"SELECT {_CANDIDATE} FROM deliveries d WHERE {_DUE_NOW} ORDER BY d.due_at, d.seq LIMIT {LOOKED_AT}")
# What waits for no lane, and the first of each: from repo to repo along the index, however much waits in them.
BESIDE_AND_FIRST = _leaving(
    f"""
    SELECT * FROM (
        SELECT {_CANDIDATE} FROM deliveries d WHERE {_DUE_NOW} AND (d.attempts > 0 OR d.replay_of <> '')
        ORDER BY d.due_at, d.seq LIMIT {LOOKED_AT}
    ) beside
    UNION ALL
    SELECT {_CANDIDATE} FROM (
        WITH RECURSIVE lanes(repo_id, place) AS (
            SELECT min(d.repo_id), 1 FROM deliveries d WHERE {_UNTRIED}
            UNION ALL
            SELECT (SELECT min(d.repo_id) FROM deliveries d WHERE {_UNTRIED} AND d.repo_id > l.repo_id), l.place + 1
            FROM lanes l WHERE l.repo_id IS NOT NULL AND l.place < {LOOKED_AT}
        )
        SELECT (
            SELECT d.id FROM deliveries d
            WHERE {_UNTRIED} AND d.due_at <= :now AND d.repo_id = l.repo_id
            ORDER BY d.repo_seq LIMIT 1
        ) AS id FROM lanes l WHERE l.repo_id IS NOT NULL
    ) first JOIN deliveries d ON d.id = first.id
    """
)


class Turn(Struct, frozen=True):
    """How many of a webhook may be in the air now; of an ordered one what was tried since then and failed is waited
    for.
    """

    webhook_id: str
    cap: int
    held_since: int


async def ready(tx: Tx, turns: Sequence[Turn], now: int) -> Sequence[Row]:
    """What may leave, with all that sending needs; `known` is 0 where the owner of the webhook may not know of it now.
    The next of a lane waits until the first try of the one before has ended.
    """
    return await tx.each(READY, [asdict(turn) for turn in turns], {"now": now})


async def beside_and_first(tx: Tx, turns: Sequence[Turn], now: int) -> Sequence[Row]:
    """The same where so much waits that `ready` may not have seen every repo, nor what failed and is due again."""
    return await tx.each(BESIDE_AND_FIRST, [asdict(turn) for turn in turns], {"now": now})


_LEASE = RowStatement(
    f"""
    UPDATE deliveries SET lease_token = :token, lease_until = :until /*pg FROM batch */
    WHERE id = :id AND {ALIVE} AND lease_until IS NULL RETURNING id
    """,
    {"id": "text"},
)


async def lease(tx: Tx, delivery_ids: Iterable[str], token: str, until: int) -> set[str]:
    """Those that are ours now."""
    rows = await tx.each(_LEASE, [{"id": one} for one in delivery_ids], {"token": token, "until": until})
    return {row["id"] for row in rows}


_END_UNSENT = RowStatement(
    """
    UPDATE deliveries SET state = :state, reason = :reason, due_at = NULL, ended_at = :now, lease_token = NULL,
        lease_until = NULL /*pg FROM batch */
    WHERE id = :id AND lease_token = :token
    """,
    {"id": "text", "state": "text", "reason": "text"},
)


async def end_unsent(tx: Tx, rows: Sequence[tuple[str, str, str]], token: str, now: int) -> None:
    """What will not go out, as (delivery, state, reason)."""
    named: list[Params] = [{"id": one, "state": state, "reason": reason} for one, state, reason in rows]
    await tx.each(_END_UNSENT, named, {"token": token, "now": now})


_PLAN = RowStatement(
    f"""
    UPDATE webhooks SET next_due_at = (
        SELECT min(x.moment) FROM (
            SELECT min(d.due_at) AS moment FROM deliveries d WHERE {_WAITING} AND d.due_at > :now
            UNION ALL
            SELECT CAST(:soon AS bigint) WHERE EXISTS (SELECT 1 FROM deliveries d WHERE {_DUE_NOW})
        ) x
    ) /*pg FROM batch */ WHERE id = :webhook_id
    RETURNING id, (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE {_DUE_NOW} LIMIT {LOOKED_AT}) y) AS waiting,
        ({_ROOM}) AS room
    """,
    {"webhook_id": "text", "soon": "bigint", "cap": "bigint"},
)


async def plan_after_claim(
    tx: Tx, turns: Iterable[Turn], soon: dict[str, int], taken: Mapping[str, int], now: int
) -> set[str]:
    """When to look at each again. What is due and was not taken waits for something in the air, whose end plans anew;
    `soon` is when to look even if that never comes. Those with room, of which more was due than `ready` looks at.
    """
    rows: list[Params] = [
        {"webhook_id": turn.webhook_id, "soon": soon[turn.webhook_id], "cap": turn.cap} for turn in turns
    ]
    planned = await tx.each(_PLAN, rows, {"now": now})
    return {row["id"] for row in planned if row["waiting"] + taken.get(row["id"], 0) >= LOOKED_AT and row["room"]}


async def is_still_wanted(db: Database, delivery_id: str, token: str) -> bool:
    """Whether it is ours, its webhook enabled and the owner of that may still know of it."""
    row = await db.one(
        f"""
        SELECT 1 FROM deliveries d {ABOUT}
        WHERE d.id = :id AND d.lease_token = :token AND w.state = '{ENABLED}' AND {MAY_GO}
        """,
        {"id": delivery_id, "token": token},
    )
    return row is not None


async def lost(tx: Tx, now: int, lease_lasts: int, limit: int) -> Sequence[Row]:
    """id, webhook_id, lease_token where a lease ran out, or was taken by a clock that has been set back since."""
    return await tx.all(
        """
        SELECT id, webhook_id, lease_token FROM deliveries
        WHERE lease_until IS NOT NULL AND (lease_until <= :now OR lease_until > :too_far) LIMIT :limit
        """,
        {"now": now, "too_far": now + 2 * lease_lasts, "limit": limit},
    )


_RELEASE = RowStatement(
    f"""
    UPDATE deliveries SET lease_token = NULL, lease_until = NULL, attempts = attempts + 1, state = '{RETRYING}',
        due_at = :due_at, tried_at = COALESCE(tried_at, CAST(:now AS bigint)) /*pg FROM batch */
    WHERE id = :id AND lease_token = :token
    """,
    {"id": "text", "token": "text", "due_at": "bigint"},
)


async def release(tx: Tx, rows: Sequence[tuple[str, str, int]], now: int) -> None:
    """Those as (delivery, lease token, when due again): a failed try of each, and the end of none."""
    named: list[Params] = [{"id": one, "token": token, "due_at": due_at} for one, token, due_at in rows]
    await tx.each(_RELEASE, named, {"now": now})
