"""Statements on consents."""

import json
from collections.abc import Iterable, Mapping

from hubgate.server.oauth.consent.model import Connected, Consent
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx

_COLUMNS = """c.id, c.user_id, c.client_id, c.scopes, c.other_scopes, c.face, c.app_name, c.created_at, c.updated_at,
    c.last_used_at, co.org_id, co.scopes AS org_scopes"""
_REGISTERED = """a.redirect_uris, a.scopes AS app_scopes, a.extra_scopes AS app_extra_scopes,
    a.required_scopes AS app_required_scopes"""
# A member who left and joined again has granted nothing since (attack O66).
_FROM = """consents c LEFT JOIN consent_organizations co ON co.consent_id = c.id AND EXISTS (
    SELECT 1 FROM memberships m WHERE m.org_id = co.org_id AND m.user_id = c.user_id AND m.joined_at = co.joined_at
)"""


async def find(db: Database, user_id: str, client_id: str) -> Consent | None:
    rows = await db.few(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE c.user_id = :user_id AND c.client_id = :client_id",
        {"user_id": user_id, "client_id": client_id},
    )
    return next(iter(_consents(rows)), None)


async def connected(tx: Tx, user_id: str, client_id: str) -> Connected | None:
    found = await _all(tx, "WHERE c.user_id = :user_id AND c.client_id = :client_id", user_id, client_id=client_id)
    return next(iter(found), None)


async def of_user(tx: Tx, user_id: str) -> list[Connected]:
    """The app that was used last comes first."""
    order = "ORDER BY COALESCE(c.last_used_at, c.created_at) DESC, c.id DESC"
    return await _all(tx, f"WHERE c.user_id = :user_id {order}", user_id)


async def page_of_user(tx: Tx, user_id: str, before: str, most: int) -> list[Connected]:
    """By age, which does not change while someone pages; `before` is the id of the last one that was shown."""
    page = "SELECT id FROM consents WHERE user_id = :user_id AND id < :before ORDER BY id DESC LIMIT :most"
    return await _all(tx, f"WHERE c.id IN ({page}) ORDER BY c.id DESC", user_id, before=before, most=most)


async def _all(tx: Tx, where: str, user_id: str, **more: str | int) -> list[Connected]:
    """With what is registered of each app."""
    sql = f"SELECT {_COLUMNS}, {_REGISTERED} FROM {_FROM} LEFT JOIN apps a ON a.client_id = c.app_id {where}"
    rows = await tx.all(sql, {"user_id": user_id, **more})
    by_id = {row["id"]: row for row in rows}
    return [_connected(consent, by_id[consent.id]) for consent in _consents(rows)]


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


async def hold(
    tx: Tx, user_id: str, client_id: str, app_id: str | None, new_id: str, now: int
) -> tuple[str, frozenset[str], frozenset[str]]:
    """The consent's id, its scopes and those for other servers, an empty one if there was none; until the unit ends it
    is this unit's alone.

    `app_id` is the client id of a registered app: if that is gone, so that the consent would outlive it, or the user
    is, this raises ConstraintViolated.
    """
    row = await tx.one(
        """
        INSERT INTO consents (id, user_id, client_id, app_id, scopes, face, app_name, created_at, updated_at)
        VALUES (:id, :user_id, :client_id, :app_id, '', '', '', :now, :now)
        ON CONFLICT (user_id, client_id) DO UPDATE SET updated_at = excluded.updated_at, app_id = excluded.app_id
        RETURNING id, scopes, other_scopes
        """,
        {"id": new_id, "user_id": user_id, "client_id": client_id, "app_id": app_id, "now": now},
    )
    if row is None:
        raise RuntimeError("holding a consent returned nothing")
    return row["id"], frozenset(parse_scopes(row["scopes"])), frozenset(parse_scopes(row["other_scopes"]))


async def hold_behind(tx: Tx, table: str, key: bytes) -> frozenset[str] | None:
    """The scopes of the consent behind a code or a refresh token, those for other servers if it is for them; None if
    either is gone. `table` is one of ours.

    Every unit that redeems, refreshes, ends a family or takes the consent back begins by holding the consent. So they
    come one after another, and what ends a family sees all its tokens.
    """
    row = await tx.one(
        f"""
        UPDATE consents SET updated_at = updated_at WHERE id = (SELECT t.consent_id FROM {table} t WHERE t.key = :key)
        RETURNING CASE WHEN (SELECT t.resources FROM {table} t WHERE t.key = :key) = '' THEN scopes ELSE other_scopes
            END AS scopes
        """,
        {"key": key},
    )
    return frozenset(parse_scopes(row["scopes"])) if row else None


async def hold_of_user(tx: Tx, user_id: str) -> int:
    """All of them, as `hold_behind` does one; how many there are."""
    sql = "UPDATE consents SET updated_at = updated_at WHERE user_id = :user_id"
    return await tx.exec(sql, {"user_id": user_id})


async def remove_of_user(tx: Tx, user_id: str) -> None:
    await tx.exec("DELETE FROM consents WHERE user_id = :user_id", {"user_id": user_id})


async def allow(
    tx: Tx, consent_id: str, scopes: Iterable[str], face: str, app_name: str, now: int, *, elsewhere: bool = False
) -> None:
    """`elsewhere`: for tokens that are for other servers."""
    column = "other_scopes" if elsewhere else "scopes"
    await tx.exec(
        f"""
        UPDATE consents SET {column} = :scopes, face = :face, app_name = :app_name, last_used_at = :now WHERE id = :id
        """,
        {"id": consent_id, "scopes": join_scopes(scopes), "face": face, "app_name": app_name, "now": now},
    )


async def set_scopes(tx: Tx, consent_id: str, scopes: Iterable[str], other_scopes: Iterable[str]) -> None:
    sql = "UPDATE consents SET scopes = :scopes, other_scopes = :other WHERE id = :id"
    await tx.exec(sql, {"id": consent_id, "scopes": join_scopes(scopes), "other": join_scopes(other_scopes)})


async def organizations(tx: Tx, consent_id: str) -> dict[str, frozenset[str]]:
    """By id, with the scopes each was granted with."""
    sql = f"SELECT co.org_id, co.scopes AS org_scopes FROM {_FROM} WHERE c.id = :id"
    return _granted(await tx.all(sql, {"id": consent_id}))


async def set_organizations(tx: Tx, consent_id: str, granted: Mapping[str, Iterable[str]]) -> None:
    await tx.exec("DELETE FROM consent_organizations WHERE consent_id = :id", {"id": consent_id})
    # Out of the table: one that was deleted or left while the user ticked it is passed over.
    sql = """
        INSERT INTO consent_organizations (consent_id, org_id, scopes, joined_at)
        SELECT c.id, m.org_id, :scopes, m.joined_at FROM consents c JOIN memberships m ON m.user_id = c.user_id
        WHERE c.id = :id AND m.org_id = :org_id
    """
    rows = [{"id": consent_id, "org_id": org, "scopes": join_scopes(granted[org])} for org in sorted(granted)]
    await tx.exec_many(sql, rows)


async def touch_of(tx: Tx, user_id: str, client_id: str, now: int) -> bool:
    """Before a change: False if there is none; otherwise it stays until the unit ends."""
    sql = "UPDATE consents SET updated_at = :now WHERE user_id = :user_id AND client_id = :client_id"
    return await tx.exec(sql, {"user_id": user_id, "client_id": client_id, "now": now}) == 1


async def note_use(tx: Tx, consent_id: str, now: int) -> bool:
    """False if it is gone; otherwise it stays until the unit ends."""
    sql = "UPDATE consents SET last_used_at = :now WHERE id = :id"
    return await tx.exec(sql, {"id": consent_id, "now": now}) == 1


async def remove(tx: Tx, user_id: str, client_id: str) -> bool:
    """With every code and token that hangs on it."""
    sql = "DELETE FROM consents WHERE user_id = :user_id AND client_id = :client_id"
    return await tx.exec(sql, {"user_id": user_id, "client_id": client_id}) == 1


async def count_of_app(tx: Tx, client_id: str) -> int:
    row = await tx.one("SELECT count(*) AS users FROM consents WHERE client_id = :client_id", {"client_id": client_id})
    return row["users"] if row else 0


async def take_scope_away(tx: Tx, client_id: str, scope: str) -> None:
    """From everyone's consent: live tokens lose it at the next request."""
    values = {"client_id": client_id, "scope": f" {scope} "}
    less = "{0} = TRIM(REPLACE(' ' || {0} || ' ', :scope, ' '))"
    both = f"{less.format('scopes')}, {less.format('other_scopes')}"
    await tx.exec(f"UPDATE consents SET {both} WHERE client_id = :client_id", values)
    of_client = "SELECT id FROM consents WHERE client_id = :client_id"
    sql = f"UPDATE consent_organizations SET {less.format('scopes')} WHERE consent_id IN ({of_client})"
    await tx.exec(sql, values)


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
            other_scopes=frozenset(parse_scopes(same[0]["other_scopes"])),
            organizations=_granted(same),
            face=same[0]["face"],
            app_name=same[0]["app_name"],
            created_at=same[0]["created_at"],
            updated_at=same[0]["updated_at"],
            last_used_at=same[0]["last_used_at"],
        )
        for same in found.values()
    ]


def _granted(rows: Iterable[Row]) -> dict[str, frozenset[str]]:
    return {row["org_id"]: frozenset(parse_scopes(row["org_scopes"])) for row in rows if row["org_id"] is not None}


def _connected(consent: Consent, row: Row) -> Connected:
    if row["redirect_uris"] is None:
        return Connected(consent)
    return Connected(
        consent,
        tuple(json.loads(row["redirect_uris"])),
        frozenset(parse_scopes(row["app_scopes"])) | frozenset(parse_scopes(row["app_extra_scopes"])),
        frozenset(parse_scopes(row["app_required_scopes"])),
    )


async def count_tokens(tx: Tx, consent_id: str, now: int) -> int:
    """Access and refresh tokens that are good now."""
    sql = """
        SELECT (SELECT count(*) FROM app_tokens t WHERE t.consent_id = :id AND t.expires_at > :now)
            + (SELECT count(*) FROM refresh_tokens r WHERE r.consent_id = :id AND r.expires_at > :now) AS tokens
    """
    row = await tx.one(sql, {"id": consent_id, "now": now})
    return row["tokens"] if row else 0
