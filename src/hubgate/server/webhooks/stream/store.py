"""Statements that read deliveries in the order of their numbers."""

from collections.abc import Iterable, Sequence

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement
from hubgate.server.webhooks.activity.store import visible_to_app
from hubgate.server.webhooks.deliveries_store import ABOUT, ALIVE, MAY_GO
from hubgate.server.webhooks.model import SKIPPED


async def webhook(tx: Tx, webhook_id: str, user_id: str | None, org_id: str | None) -> Row | None:
    """The latest number of a webhook of this owner, and the keys that sign."""
    return await tx.one(
        """
        SELECT last_seq, secret, old_secret, old_secret_until, private_key FROM webhooks
        WHERE id = :id AND (user_id = :user_id OR org_id = :org_id)
        """,
        {"id": webhook_id, "user_id": user_id, "org_id": org_id},
    )


async def entries(tx: Tx, webhook_id: str, after: int, limit: int, visible: VisibleRepos | None) -> Sequence[Row]:
    """The next deliveries after a number, without bodies. `may_read` is 0 if the owner of the webhook may not read the
    repo now, or if the app that reads may not see it. Deliveries of a backlog that is being skipped count as skipped.
    """
    values: dict[str, str | int] = {"webhook_id": webhook_id, "after": after, "limit": limit}
    seen = visible_to_app(visible, values) if visible is not None else "1 = 1"
    is_skipped = f"d.{ALIVE} AND d.seq <= w.skip_through"
    return await tx.all(
        f"""
        SELECT d.seq, d.id, d.repo_seq, d.depth, d.is_test, d.attempts,
            CASE WHEN {is_skipped} THEN '{SKIPPED}' ELSE d.state END AS state,
            CASE WHEN {is_skipped} THEN COALESCE(w.skip_reason, '') ELSE d.reason END AS reason,
            CASE WHEN {MAY_GO} AND {seen} THEN 1 ELSE 0 END AS may_read,
            COALESCE(length(d.body), length(e.body)) AS size
        FROM deliveries d {ABOUT}
        WHERE d.webhook_id = :webhook_id AND d.seq > :after ORDER BY d.seq LIMIT :limit
        """,
        values,
    )


_BODIES = RowStatement(
    """
    SELECT d.id, COALESCE(d.body, e.body) AS body FROM deliveries d LEFT JOIN events e ON e.id = d.event_id
    WHERE d.id = :id
    """,
    {"id": "text"},
)


async def bodies(tx: Tx, delivery_ids: Iterable[str]) -> dict[str, bytes]:
    rows: list[Params] = [{"id": delivery_id} for delivery_id in delivery_ids]
    return {row["id"]: row["body"] for row in await tx.each(_BODIES, rows)} if rows else {}


# A deleted webhook has no owner until its last row is removed.
_LATEST = RowStatement(
    "SELECT id, last_seq FROM webhooks WHERE id = :id AND (user_id IS NOT NULL OR org_id IS NOT NULL)", {"id": "text"}
)


async def latest(db: Database, webhook_ids: Iterable[str]) -> dict[str, int]:
    """The latest number of each webhook; deleted webhooks are left out."""
    rows: list[Params] = [{"id": webhook_id} for webhook_id in webhook_ids]
    found: Sequence[Row] = await db.read(lambda tx: tx.each(_LATEST, rows))
    return {row["id"]: row["last_seq"] for row in found}
