"""Statements on remembered approvals."""

from hubgate.server.oauth.approvals.decision import ConsentDetails
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import insert_row


async def find(db: Database, consent_id: str, shown: ConsentDetails) -> Row | None:
    sql = "SELECT scopes FROM consent_approvals WHERE consent_id = :consent_id AND shown = :shown"
    return await db.one(sql, {"consent_id": consent_id, "shown": shown.key})


async def of_consent(tx: Tx, consent_id: str) -> list[Row]:
    sql = "SELECT shown, resources, scopes FROM consent_approvals WHERE consent_id = :consent_id"
    return list(await tx.all(sql, {"consent_id": consent_id}))


async def set_scopes(tx: Tx, consent_id: str, scopes_of: dict[str, str]) -> None:
    """Update several approvals; `scopes_of` maps the key of an approval to its scopes."""
    await tx.exec_many(
        "UPDATE consent_approvals SET scopes = :scopes WHERE consent_id = :consent_id AND shown = :shown",
        [{"consent_id": consent_id, "shown": shown, "scopes": scopes} for shown, scopes in scopes_of.items()],
    )


_SAVE = insert_row(
    "INSERT INTO consent_approvals (consent_id, shown, resources, redirect_uri, scopes, approved_at)",
    "ON CONFLICT (consent_id, shown) DO UPDATE SET scopes = excluded.scopes, approved_at = excluded.approved_at",
)


async def save(tx: Tx, consent_id: str, shown: ConsentDetails, scopes: str, now: int) -> None:
    await tx.exec(
        _SAVE,
        {
            "consent_id": consent_id,
            "shown": shown.key,
            "resources": shown.resources,
            "redirect_uri": shown.redirect_uri,
            "scopes": scopes,
            "approved_at": now,
        },
    )


async def drop_oldest(tx: Tx, consent_id: str, most: int) -> None:
    """Delete all but the newest `most`; LIMIT is enough because a consent never has many more."""
    await tx.exec(
        """
        DELETE FROM consent_approvals WHERE consent_id = :consent_id AND shown IN (
            SELECT shown FROM consent_approvals WHERE consent_id = :consent_id
            ORDER BY approved_at DESC, shown LIMIT 1000 OFFSET :most
        )
        """,
        {"consent_id": consent_id, "most": most},
    )
