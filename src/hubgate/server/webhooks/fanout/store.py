"""Statements that turn events into deliveries."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.entitled import MAY_KNOW, MIGHT_KNOW
from hubgate.server.webhooks.model import ENABLED, QUOTA_WINDOW


@dataclass(frozen=True, slots=True)
class Unfanned:
    """An event on its way, and how far it has come."""

    id: str
    repo_id: str
    repo_seq: int
    repo_type: str
    owner_id: str
    private: int
    scope: str
    action: str
    body: bytes
    depth: int
    created_at: int
    fan_cursor: str | None


_EVENT = ", ".join(f"e.{field.name}" for field in fields(Unfanned))


async def unfanned(tx: Tx, most: int) -> list[Unfanned]:
    """The first of each repo: what happened later there waits."""
    rows = await tx.all(
        f"""
        SELECT {_EVENT} FROM events e
        WHERE e.fanned_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM events p WHERE p.repo_id = e.repo_id AND p.fanned_at IS NULL AND p.repo_seq < e.repo_seq
        )
        ORDER BY e.id LIMIT :most
        """,
        {"most": most},
    )
    return [Unfanned(*row) for row in rows]


async def hold(tx: Tx, event_id: str) -> Unfanned | None:
    """As it is now; None if it has reached everyone."""
    row = await tx.one(
        f"""
        UPDATE events AS e SET fan_cursor = fan_cursor WHERE id = :id AND fanned_at IS NULL
        RETURNING {_EVENT.replace("e.", "")}
        """,
        {"id": event_id},
    )
    return Unfanned(*row) if row else None


async def bind(tx: Tx, event: Unfanned, owner_kind: str, owner_key: str, repo_key: str) -> None:
    """Names that were watched before anyone had them. An account keeps its former names, so those count too."""
    rows = await tx.all("SELECT key FROM names WHERE owner_id = :id ORDER BY key", {"id": event.owner_id})
    keys = {owner_key, *(str(row["key"]) for row in rows)}
    for target_id, kind, key in (
        *((event.owner_id, owner_kind, key) for key in sorted(keys)),
        (event.repo_id, event.repo_type, repo_key),
    ):
        await tx.exec(
            """
            UPDATE watches SET target_id = :target_id WHERE target_id IS NULL AND key = :key AND type = :kind
                AND webhook_id IN (SELECT id FROM webhooks WHERE created_at <= :event_at)
            """,
            {"target_id": target_id, "kind": kind, "key": key, "event_at": event.created_at},
        )


async def repo_now(tx: Tx, repo_id: str) -> Row | None:
    """owner_id, private; None once it is deleted."""
    return await tx.one("SELECT owner_id, private FROM repos WHERE id = :id", {"id": repo_id})


async def owner_kind(tx: Tx, owner_id: str) -> str:
    row = await tx.one("SELECT kind FROM names WHERE owner_id = :id LIMIT 1", {"id": owner_id})
    return str(row["kind"]) if row else "user"


async def last_watcher(tx: Tx, event: Unfanned, most: int) -> tuple[str, int] | None:
    """Where the next chunk of watchers ends and how many it has; None if there are no more."""
    row = await tx.one(
        """
        SELECT max(c.webhook_id) AS last, count(*) AS watchers FROM (
            SELECT DISTINCT x.webhook_id FROM watches x
            WHERE x.target_id IN (:repo_id, :owner_id) AND x.webhook_id > :cursor ORDER BY x.webhook_id LIMIT :most
        ) c
        """,
        {"repo_id": event.repo_id, "owner_id": event.owner_id, "cursor": event.fan_cursor or "", "most": most},
    )
    return (row["last"], row["watchers"]) if row and row["last"] is not None else None


async def trigger(
    tx: Tx, event: Unfanned, upto: str, domain: str, reader: Row | None, quota: int, now: int
) -> Sequence[Row]:
    """Number the deliveries of one chunk: id, last_seq, state, url, within (the quota) of each webhook that is told."""
    return await tx.all(
        f"""
        UPDATE webhooks AS w SET
            last_seq = w.last_seq + 1,
            last_trigger_at = :now,
            quota_used = CASE WHEN w.quota_from <= :window THEN 1 ELSE w.quota_used + 1 END,
            quota_from = CASE WHEN w.quota_from <= :window THEN CAST(:now AS bigint) ELSE w.quota_from END,
            next_due_at = CASE WHEN w.state = '{ENABLED}' THEN CAST(:now AS bigint) ELSE w.next_due_at END
        WHERE w.id > :cursor AND w.id <= :upto AND w.created_at <= :event_at
            AND w.id IN (SELECT x.webhook_id FROM watches x WHERE x.target_id IN (:repo_id, :event_owner))
            AND (' ' || w.domains || ' ') LIKE :domain
            AND {MAY_KNOW} AND {MIGHT_KNOW}
        RETURNING id, last_seq, state, url, CASE WHEN quota_used <= :quota THEN 1 ELSE 0 END AS within
        """,
        {
            "now": now,
            "window": now - QUOTA_WINDOW,
            "cursor": event.fan_cursor or "",
            "upto": upto,
            "event_at": event.created_at,
            "repo_id": event.repo_id,
            "event_owner": event.owner_id,
            "event_private": event.private,
            "domain": f"% {domain} %",
            "private": event.private if reader is None else reader["private"],
            "owner_id": event.owner_id if reader is None else reader["owner_id"],
            "quota": quota,
        },
    )


async def advance(tx: Tx, event_id: str, cursor: str) -> None:
    await tx.exec("UPDATE events SET fan_cursor = :cursor WHERE id = :id", {"id": event_id, "cursor": cursor})


async def finish(tx: Tx, event_id: str, now: int) -> None:
    await tx.exec("UPDATE events SET fanned_at = :now WHERE id = :id", {"id": event_id, "now": now})
