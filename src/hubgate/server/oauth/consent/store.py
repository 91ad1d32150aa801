"""Statements on consents."""

from collections.abc import Iterable

from hubgate.server.oauth.consent.model import Consent
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx

_COLUMNS = """c.id, c.user_id, c.client_id, c.scopes, c.face, c.app_name, c.created_at, c.updated_at, c.last_used_at,
    co.org_id"""
_FROM = "consents c LEFT JOIN consent_organizations co ON co.consent_id = c.id"


async def find(db: Database, user_id: str, client_id: str) -> Consent | None:
    rows = await db.few(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE c.user_id = :user_id AND c.client_id = :client_id",
        {"user_id": user_id, "client_id": client_id},
    )
    return next(iter(_consents(rows)), None)


async def of_user(tx: Tx, user_id: str) -> list[Consent]:
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE c.user_id = :user_id ORDER BY c.created_at, c.id", {"user_id": user_id}
    )
    return _consents(rows)


async def users_of_app(tx: Tx, client_id: str, most: int) -> list[Row]:
    """Who allowed an app, the latest first: name, created_at, last_used_at."""
    rows = await tx.all(
        """
        SELECT u.name, c.created_at, c.last_used_at FROM consents c JOIN users u ON u.id = c.user_id
        WHERE c.client_id = :client_id ORDER BY c.created_at DESC, c.id LIMIT :most
        """,
        {"client_id": client_id, "most": most},
    )
    return list(rows)


async def save(tx: Tx, consent: Consent) -> str:
    """The id under which it is kept: the given one, or that of the consent that was there."""
    row = await tx.one(
        """
        INSERT INTO consents (id, user_id, client_id, app_id, scopes, face, app_name, created_at, updated_at)
        VALUES (:id, :user_id, :client_id, (SELECT a.client_id FROM apps a WHERE a.client_id = :client_id), :scopes,
            :face, :app_name, :created_at, :updated_at)
        ON CONFLICT (user_id, client_id) DO UPDATE SET scopes = excluded.scopes, face = excluded.face,
            app_name = excluded.app_name, updated_at = excluded.updated_at
        RETURNING id
        """,
        {
            "id": consent.id,
            "user_id": consent.user_id,
            "client_id": consent.client_id,
            "scopes": join_scopes(consent.scopes),
            "face": consent.face,
            "app_name": consent.app_name,
            "created_at": consent.created_at,
            "updated_at": consent.updated_at,
        },
    )
    if row is None:
        raise RuntimeError("saving a consent returned nothing")
    kept: str = row["id"]
    await _set_organizations(tx, kept, consent.organizations)
    return kept


async def _set_organizations(tx: Tx, consent_id: str, organizations: Iterable[str]) -> None:
    await tx.exec("DELETE FROM consent_organizations WHERE consent_id = :id", {"id": consent_id})
    sql = "INSERT INTO consent_organizations (consent_id, org_id) VALUES (:id, :org_id)"
    await tx.exec_many(sql, [{"id": consent_id, "org_id": org_id} for org_id in sorted(organizations)])


async def note_use(tx: Tx, consent_id: str, now: int) -> None:
    await tx.exec("UPDATE consents SET last_used_at = :now WHERE id = :id", {"id": consent_id, "now": now})


async def remove(tx: Tx, user_id: str, client_id: str) -> bool:
    """With every code and token that hangs on it."""
    sql = "DELETE FROM consents WHERE user_id = :user_id AND client_id = :client_id"
    return await tx.exec(sql, {"user_id": user_id, "client_id": client_id}) == 1


async def remove_of_client(tx: Tx, client_id: str) -> None:
    await tx.exec("DELETE FROM consents WHERE client_id = :client_id", {"client_id": client_id})


def _consents(rows: Iterable[Row]) -> list[Consent]:
    """Rows repeat the consent for each of its organizations."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["id"], []).append(row)
    return [
        Consent(
            id=same[0]["id"],
            user_id=same[0]["user_id"],
            client_id=same[0]["client_id"],
            scopes=frozenset(parse_scopes(same[0]["scopes"])),
            organizations=frozenset(row["org_id"] for row in same if row["org_id"] is not None),
            face=same[0]["face"],
            app_name=same[0]["app_name"],
            created_at=same[0]["created_at"],
            updated_at=same[0]["updated_at"],
            last_used_at=same[0]["last_used_at"],
        )
        for same in found.values()
    ]
