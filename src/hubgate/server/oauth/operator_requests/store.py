"""SQL statements for requests to the operator."""

from hubgate.server.oauth.operator_requests.model import OperatorRequest
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import insert_row

COLUMNS = """r.id, r.client_id, r.wanted, r.reason, r.created_at, r.granted, r.decided_at, a.name AS app_name,
    COALESCE(ow.name, og.name, '') AS owner, CASE WHEN a.org_id IS NULL THEN 0 ELSE 1 END AS of_organization,
    COALESCE(requester.name, '') AS requester, COALESCE(og.plan, '') AS plan"""
_FROM = """operator_requests r JOIN apps a ON a.client_id = r.client_id LEFT JOIN users ow ON ow.id = a.owner_id
    LEFT JOIN organizations og ON og.id = a.org_id LEFT JOIN users requester ON requester.id = r.asked_by"""

_ADD = insert_row(
    "INSERT INTO operator_requests (id, client_id, wanted, reason, asked_by, created_at)",
    "ON CONFLICT DO NOTHING RETURNING id",
)


async def add(tx: Tx, request_id: str, client_id: str, wanted: str, reason: str, asked_by: str, now: int) -> bool:
    """Add a request; False if the app has the same request pending."""
    row = await tx.one(
        _ADD,
        {
            "id": request_id,
            "client_id": client_id,
            "wanted": wanted,
            "reason": reason,
            "asked_by": asked_by,
            "created_at": now,
        },
    )
    return row is not None


async def count_all_pending(tx: Tx) -> int:
    row = await tx.one("SELECT count(*) AS pending FROM operator_requests WHERE granted IS NULL")
    return row["pending"] if row else 0


async def count_pending(tx: Tx, client_id: str) -> int:
    sql = "SELECT count(*) AS pending FROM operator_requests WHERE client_id = :client_id AND granted IS NULL"
    row = await tx.one(sql, {"client_id": client_id})
    return row["pending"] if row else 0


async def of_app(tx: Tx, client_id: str, limit: int) -> list[OperatorRequest]:
    """The requests for an app, newest first."""
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM {_FROM} WHERE r.client_id = :client_id ORDER BY r.created_at DESC, r.id DESC LIMIT :limit
        """,
        {"client_id": client_id, "limit": limit},
    )
    return [OperatorRequest(*row) for row in rows]


async def pending(tx: Tx, limit: int) -> list[OperatorRequest]:
    """Undecided requests, oldest first."""
    rows = await tx.all(
        f"SELECT {COLUMNS} FROM {_FROM} WHERE r.granted IS NULL ORDER BY r.created_at, r.id LIMIT :limit",
        {"limit": limit},
    )
    return [OperatorRequest(*row) for row in rows]


async def decided(tx: Tx, limit: int) -> list[OperatorRequest]:
    """Decided requests, newest first."""
    rows = await tx.all(
        f"""
        SELECT {COLUMNS} FROM {_FROM} WHERE r.granted IS NOT NULL ORDER BY r.decided_at DESC, r.id DESC LIMIT :limit
        """,
        {"limit": limit},
    )
    return [OperatorRequest(*row) for row in rows]


async def find(db: Database, request_id: str) -> OperatorRequest | None:
    row = await db.one(f"SELECT {COLUMNS} FROM {_FROM} WHERE r.id = :id", {"id": request_id})
    return OperatorRequest(*row) if row else None


async def decide(tx: Tx, request_id: str, granted: bool, now: int) -> Row | None:
    """Store the decision and return asked_by; None if the request was decided already."""
    return await tx.one(
        """
        UPDATE operator_requests SET granted = :granted, decided_at = :now WHERE id = :id AND granted IS NULL
        RETURNING asked_by
        """,
        {"id": request_id, "granted": int(granted), "now": now},
    )
