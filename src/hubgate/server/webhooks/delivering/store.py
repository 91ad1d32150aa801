"""Statements on deliveries: queueing, claiming under a lease, and what came of each try."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.delivering.outcome import Try
from hubgate.server.webhooks.delivering.request import Outgoing
from hubgate.server.webhooks.entitled import MAY_KNOW
from hubgate.server.webhooks.model import BREAKS_AFTER, ENABLED, FAILED, PENDING, RETRYING, SKIPPED, SUSPENDED

_ALIVE = "state IN ('pending', 'retrying', 'parked')"


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """The order of the fields is that of the insert."""

    id: str
    webhook_id: str
    event_id: str
    seq: int
    repo_id: str
    repo_seq: int
    repo_type: str
    repo_name: str
    scope: str
    action: str
    depth: int
    state: str
    reason: str
    due_at: int | None
    created_at: int
    replay_of: str = ""
    body: bytes | None = None
    is_test: int = 0
    attempts: int = 0


_NEW = [field.name for field in fields(NewDelivery)]
_ADD = f"INSERT INTO deliveries ({', '.join(_NEW)}) VALUES ({', '.join(f':{name}' for name in _NEW)})"


async def add(tx: Tx, deliveries: Sequence[NewDelivery]) -> None:
    if deliveries:
        await tx.exec_many(_ADD, [asdict(delivery) for delivery in deliveries])


async def skip_all(tx: Tx, webhook_id: str, reason: str, now: int) -> int:
    """What waits. What is in the air is left: whoever sends it finds the webhook switched off."""
    return await tx.exec(
        f"""
        UPDATE deliveries SET state = '{SKIPPED}', reason = :reason, due_at = NULL, ended_at = :now
        WHERE webhook_id = :webhook_id AND {_ALIVE} AND lease_until IS NULL
        """,
        {"webhook_id": webhook_id, "reason": reason, "now": now},
    )


# What a suspension cost: never sent because of it, or given up since. In an earlier one's time it is left alone.
_MISSED = f"""
    webhook_id = :webhook_id AND (state = '{SKIPPED}' AND reason = '{SUSPENDED}' OR state = '{FAILED}')
    AND COALESCE(ended_at, created_at) >= :since AND lease_until IS NULL
"""


async def missed(tx: Tx, webhook_id: str, since: int) -> int:
    """How many deliveries wait for a webhook that has been suspended since then."""
    sql = f"SELECT count(*) AS missed FROM deliveries WHERE {_MISSED}"
    row = await tx.one(sql, {"webhook_id": webhook_id, "since": since})
    return int(row["missed"]) if row else 0


async def requeue_missed(tx: Tx, webhook_id: str, since: int, now: int) -> int:
    """The same deliveries, under the same ids: a receiver that had one after all knows it again."""
    queued = await tx.exec(
        f"""
        UPDATE deliveries SET state = CASE WHEN attempts = 0 THEN '{PENDING}' ELSE '{RETRYING}' END, reason = '',
            due_at = :now, ended_at = NULL
        WHERE {_MISSED}
        """,
        {"webhook_id": webhook_id, "since": since, "now": now},
    )
    await replan(tx, webhook_id)
    return queued


# Claiming.


async def due_webhooks(tx: Tx, now: int, most: int) -> Sequence[Row]:
    """Who was served longest ago comes first, so that a backlog of one does not keep the others waiting."""
    return await tx.all(
        f"""
        SELECT id FROM webhooks WHERE next_due_at <= :now AND closed_until <= :now AND state = '{ENABLED}'
        ORDER BY served_at, id LIMIT :most
        """,
        {"now": now, "most": most},
    )


async def take_turn(tx: Tx, webhook_id: str, now: int) -> Row | None:
    """ordered, failures; None if another process was faster. Nobody else claims for it until this unit ends."""
    return await tx.one(
        f"""
        UPDATE webhooks SET served_at = :now, next_due_at = NULL
        WHERE id = :id AND next_due_at <= :now AND closed_until <= :now AND state = '{ENABLED}'
        RETURNING ordered, failures
        """,
        {"id": webhook_id, "now": now},
    )


async def in_the_air(tx: Tx, webhook_id: str) -> int:
    sql = "SELECT count(*) AS leased FROM deliveries WHERE webhook_id = :id AND lease_until IS NOT NULL"
    row = await tx.one(sql, {"id": webhook_id})
    return int(row["leased"]) if row else 0


async def ready(tx: Tx, webhook_id: str, now: int, held_since: int, most: int) -> list[str]:
    """Ids of what may leave now. The next of a lane waits until the first try of the one before has ended; of an
    ordered webhook (`held_since` above 0) until it has arrived, unless that takes too long.
    """
    rows = await tx.all(
        f"""
        SELECT d.id FROM deliveries d
        WHERE d.webhook_id = :id AND d.{_ALIVE} AND d.due_at <= :now AND d.lease_until IS NULL
            AND (d.attempts > 0 OR d.replay_of <> '' OR NOT EXISTS (
                SELECT 1 FROM deliveries p
                WHERE p.webhook_id = d.webhook_id AND p.repo_id = d.repo_id AND p.repo_seq < d.repo_seq
                    AND p.{_ALIVE} AND p.replay_of = ''
                    AND (p.attempts = 0 OR (CAST(:held_since AS bigint) > 0 AND p.created_at > :held_since))
            ))
        ORDER BY d.due_at, d.seq LIMIT :most
        """,
        {"id": webhook_id, "now": now, "held_since": held_since, "most": most},
    )
    return [row["id"] for row in rows]


async def lease(tx: Tx, delivery_ids: Sequence[str], token: str, until: int) -> None:
    await tx.exec_many(
        "UPDATE deliveries SET lease_token = :token, lease_until = :until WHERE id = :id",
        [{"id": delivery_id, "token": token, "until": until} for delivery_id in delivery_ids],
    )


async def plan_next(tx: Tx, webhook_id: str, after: int) -> None:
    """When to look at this webhook again, for what is not due yet."""
    await tx.exec(
        f"""
        UPDATE webhooks SET next_due_at = (
            SELECT min(d.due_at) FROM deliveries d
            WHERE d.webhook_id = :id AND d.{_ALIVE} AND d.lease_until IS NULL AND d.due_at > :after
        ) WHERE id = :id
        """,
        {"id": webhook_id, "after": after},
    )


async def release_lost(tx: Tx, now: int, due_at: int, most: int) -> int:
    """Leases whose holders died or froze: each counts as a failed try, and none ends its delivery."""
    rows = await tx.all(
        f"""
        UPDATE deliveries SET lease_token = NULL, lease_until = NULL, attempts = attempts + 1, state = '{RETRYING}',
            due_at = :due_at
        WHERE id IN (SELECT id FROM deliveries WHERE lease_until <= :now LIMIT :most) AND lease_until <= :now
        RETURNING webhook_id
        """,
        {"now": now, "due_at": due_at, "most": most},
    )
    for webhook_id in sorted({row["webhook_id"] for row in rows}):
        await replan(tx, webhook_id)
    return len(rows)


# Sending.


async def to_send(tx: Tx, delivery_id: str, token: str) -> Row | None:
    """What goes out and where to; None once the lease is lost."""
    return await tx.one(
        """
        SELECT d.webhook_id, d.event_id, d.seq, d.repo_id, d.repo_seq, d.attempts, d.depth, d.is_test, d.created_at,
            COALESCE(d.body, e.body) AS body, w.url, w.state, w.secret, w.old_secret, w.old_secret_until,
            w.private_key, COALESCE(r.owner_id, e.owner_id) AS owner_id, COALESCE(r.private, e.private) AS private
        FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id
        LEFT JOIN events e ON e.id = d.event_id LEFT JOIN repos r ON r.id = d.repo_id
        WHERE d.id = :id AND d.lease_token = :token
        """,
        {"id": delivery_id, "token": token},
    )


async def may_know(tx: Tx, webhook_id: str, owner_id: str, private: int) -> bool:
    sql = f"SELECT 1 FROM webhooks w WHERE w.id = :id AND {MAY_KNOW}"
    return await tx.one(sql, {"id": webhook_id, "owner_id": owner_id, "private": private}) is not None


async def end_try(
    tx: Tx, delivery_id: str, token: str, state: str, reason: str, status: int | None, due_at: int | None, now: int
) -> Row | None:
    """webhook_id, attempts; None if the lease was lost: a frozen worker records nothing."""
    return await tx.one(
        """
        UPDATE deliveries SET state = :state, reason = :reason, attempts = attempts + 1, status = :status,
            due_at = :due_at, lease_token = NULL, lease_until = NULL,
            ended_at = CASE WHEN CAST(:due_at AS bigint) IS NULL THEN CAST(:now AS bigint) END
        WHERE id = :id AND lease_token = :token RETURNING webhook_id, attempts
        """,
        {
            "id": delivery_id,
            "token": token,
            "state": state,
            "reason": reason,
            "status": status,
            "due_at": due_at,
            "now": now,
        },
    )


async def give_back(tx: Tx, delivery_id: str, token: str, state: str, reason: str, due_at: int | None) -> str | None:
    """Unsent: without counting a try. The webhook's id; None if the lease was lost."""
    row = await tx.one(
        """
        UPDATE deliveries SET state = CASE WHEN :state = '' THEN state ELSE :state END, reason = :reason,
            due_at = :due_at, lease_token = NULL, lease_until = NULL
        WHERE id = :id AND lease_token = :token RETURNING webhook_id
        """,
        {"id": delivery_id, "token": token, "state": state, "reason": reason, "due_at": due_at},
    )
    return row["webhook_id"] if row else None


async def note_try(tx: Tx, delivery_id: str, number: int, out: Outgoing, tried: Try) -> None:
    await tx.exec(
        """
        INSERT INTO attempts (delivery_id, number, at, url, signature, status, duration_ms, error, response)
        VALUES (:delivery_id, :number, :at, :url, :signature, :status, :duration_ms, :error, :response)
        """,
        {
            "delivery_id": delivery_id,
            "number": number,
            "at": tried.at,
            "url": out.url,
            "signature": out.signature,
            "status": tried.status,
            "duration_ms": tried.duration_ms,
            "error": tried.error,
            "response": tried.response,
        },
    )


_NEXT = f"""
    (SELECT min(d.due_at) FROM deliveries d
        WHERE d.webhook_id = webhooks.id AND d.{_ALIVE} AND d.lease_until IS NULL)
"""


async def replan(tx: Tx, webhook_id: str) -> None:
    await tx.exec(f"UPDATE webhooks SET next_due_at = {_NEXT} WHERE id = :id", {"id": webhook_id})


async def note_success(tx: Tx, webhook_id: str) -> None:
    await tx.exec(
        f"""
        UPDATE webhooks SET failures = 0, closed_until = 0, failing_since = NULL, warned_at = NULL,
            next_due_at = {_NEXT}
        WHERE id = :id
        """,
        {"id": webhook_id},
    )


async def note_failure(tx: Tx, webhook_id: str, first_pause: int, longest_pause: int, now: int) -> Row | None:
    """failures, failing_since, warned_at, state. From the tenth failure in a row on nothing is sent for a while."""
    return await tx.one(
        f"""
        UPDATE webhooks SET failures = failures + 1, failing_since = COALESCE(failing_since, :now),
            closed_until = CASE WHEN failures + 1 < {BREAKS_AFTER} THEN closed_until
                WHEN failures + 1 - {BREAKS_AFTER} >= 5 THEN CAST(:now AS bigint) + :longest
                ELSE CAST(:now AS bigint) + :first * (1 << CAST(failures + 1 - {BREAKS_AFTER} AS integer)) END,
            next_due_at = {_NEXT}
        WHERE id = :id RETURNING failures, failing_since, warned_at, state
        """,
        {"id": webhook_id, "now": now, "first": first_pause, "longest": longest_pause},
    )


async def set_warned(tx: Tx, webhook_id: str, now: int) -> None:
    await tx.exec("UPDATE webhooks SET warned_at = :now WHERE id = :id", {"id": webhook_id, "now": now})
