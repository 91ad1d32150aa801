"""SQL statements for consents and the approvals behind them."""

import json
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from hubgate.server.accounts.store import current_membership_sql
from hubgate.server.oauth.consent.model import AppConnection, Consent, ConsentDetails, ResourceScopes, scopes_on_all
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_COLUMNS = """c.id, c.user_id, c.client_id, c.scopes, c.resource_scopes, c.face, c.app_name,
    c.created_at, c.updated_at, c.last_used_at, co.org_id, co.scopes AS org_scopes"""
_REGISTERED = """a.redirect_uris, a.scopes AS app_scopes, a.extra_scopes AS app_extra_scopes,
    a.required_scopes AS app_required_scopes"""
_FROM = f"""consents c LEFT JOIN consent_organizations co ON co.consent_id = c.id AND EXISTS (
    SELECT 1 FROM memberships m WHERE {current_membership_sql()}
)"""


async def find(db: Database, user_id: str, client_id: str) -> Consent | None:
    rows = await db.few(
        f"SELECT {_COLUMNS} FROM {_FROM} WHERE c.user_id = :user_id AND c.client_id = :client_id",
        {"user_id": user_id, "client_id": client_id},
    )
    return next(iter(_consents(rows)), None)


async def find_connection(tx: Tx, user_id: str, client_id: str) -> AppConnection | None:
    found = await _all(tx, "WHERE c.user_id = :user_id AND c.client_id = :client_id", user_id, client_id=client_id)
    return next(iter(found), None)


async def of_user(tx: Tx, user_id: str) -> list[AppConnection]:
    """The user's connected apps, most recently used first."""
    order = "ORDER BY COALESCE(c.last_used_at, c.created_at) DESC, c.id DESC"
    return await _all(tx, f"WHERE c.user_id = :user_id {order}", user_id)


async def page_of_user(tx: Tx, user_id: str, before: str, limit: int) -> list[AppConnection]:
    """A page of connected apps, newest first, a stable order. `before` is the id of the last consent shown."""
    page = "SELECT id FROM consents WHERE user_id = :user_id AND id < :before ORDER BY id DESC LIMIT :limit"
    return await _all(tx, f"WHERE c.id IN ({page}) ORDER BY c.id DESC", user_id, before=before, limit=limit)


async def _all(tx: Tx, where: str, user_id: str, **more: str | int) -> list[AppConnection]:
    """Consents with the registration of each app."""
    sql = f"SELECT {_COLUMNS}, {_REGISTERED} FROM {_FROM} LEFT JOIN apps a ON a.client_id = c.app_id {where}"
    rows = await tx.all(sql, {"user_id": user_id, **more})
    by_id = {row["id"]: row for row in rows}
    return [_connected(consent, by_id[consent.id]) for consent in _consents(rows)]


async def users_of_app(tx: Tx, client_id: str, limit: int) -> list[Row]:
    """Users who have approved an app, newest first: name, created_at, last_used_at."""
    rows = await tx.all(
        """
        SELECT u.name, c.created_at, c.last_used_at FROM consents c JOIN users u ON u.id = c.user_id
        WHERE c.client_id = :client_id ORDER BY c.created_at DESC, c.id LIMIT :limit
        """,
        {"client_id": client_id, "limit": limit},
    )
    return list(rows)


class LockedConsent(Struct, frozen=True):
    """A consent that the transaction has locked."""

    id: str
    scopes: frozenset[str]
    # Scopes for other servers, by server.
    resource_scopes: ResourceScopes

    def allowed(self, resources: Collection[str]) -> frozenset[str]:
        """The approved scopes of a token for these servers; empty for this hub."""
        return scopes_on_all(self.resource_scopes, resources) if resources else self.scopes

    def allowed_on(self, resource: str) -> frozenset[str]:
        return self.resource_scopes.get(resource, frozenset())


_LOCK = insert_row(
    "INSERT INTO consents (id, user_id, client_id, app_id, scopes, face, app_name, created_at, updated_at)",
    """
    ON CONFLICT (user_id, client_id) DO UPDATE SET updated_at = excluded.updated_at, app_id = excluded.app_id
    RETURNING id, scopes, resource_scopes
    """,
)


async def lock(tx: Tx, user_id: str, client_id: str, app_id: str | None, new_id: str, now: int) -> LockedConsent:
    """Lock the consent until the transaction ends; create an empty one if there is none.

    `app_id` is the client id of a registered app. ConstraintViolated if that app or the user was deleted.
    """
    empty: Params = {"scopes": "", "face": "", "app_name": "", "created_at": now, "updated_at": now}
    row = await tx.one(_LOCK, {"id": new_id, "user_id": user_id, "client_id": client_id, "app_id": app_id, **empty})
    if row is None:
        raise RuntimeError("locking a consent returned nothing")
    return _locked(row)


def _locked(row: Row) -> LockedConsent:
    return LockedConsent(
        row["id"], frozenset(parse_scopes(row["scopes"])), read_resource_scopes(row["resource_scopes"])
    )


async def lock_by_token(tx: Tx, table: str, key: bytes) -> LockedConsent | None:
    """Lock the consent of a code or refresh token; None if either was deleted. `table` is never user input.

    Every transaction that redeems, refreshes, revokes a family or revokes the consent locks the consent first. So they
    run one after another, and revoking a family finds all its tokens.
    """
    row = await tx.one(
        f"""
        UPDATE consents SET updated_at = updated_at WHERE id = (SELECT t.consent_id FROM {table} t WHERE t.key = :key)
        RETURNING id, scopes, resource_scopes
        """,
        {"key": key},
    )
    return _locked(row) if row else None


async def lock_user_consents(tx: Tx, user_id: str) -> int:
    """Lock all consents of a user, like `lock_by_token`; returns their number."""
    sql = "UPDATE consents SET updated_at = updated_at WHERE user_id = :user_id"
    return await tx.exec(sql, {"user_id": user_id})


async def delete_user_consents(tx: Tx, user_id: str) -> None:
    await tx.exec("DELETE FROM consents WHERE user_id = :user_id", {"user_id": user_id})


async def update_consent(tx: Tx, after: LockedConsent, face: str, app_name: str, now: int) -> None:
    """Update the approved scopes and the app's appearance."""
    await tx.exec(
        """
        UPDATE consents SET scopes = :scopes, resource_scopes = :resource_scopes, face = :face, app_name = :app_name,
            last_used_at = :now
        WHERE id = :id
        """,
        {
            "id": after.id,
            "scopes": join_scopes(after.scopes),
            "resource_scopes": _write_resource_scopes(after.resource_scopes),
            "face": face,
            "app_name": app_name,
            "now": now,
        },
    )


async def set_scopes(tx: Tx, consent_id: str, scopes: Iterable[str], resource_scopes: ResourceScopes) -> None:
    sql = "UPDATE consents SET scopes = :scopes, resource_scopes = :other WHERE id = :id"
    other = _write_resource_scopes(resource_scopes)
    await tx.exec(sql, {"id": consent_id, "scopes": join_scopes(scopes), "other": other})


def read_resource_scopes(stored: str) -> dict[str, frozenset[str]]:
    return {name: frozenset(parse_scopes(scopes)) for name, scopes in json.loads(stored).items()}


def _write_resource_scopes(granted: ResourceScopes) -> str:
    return json.dumps({name: join_scopes(granted[name]) for name in sorted(granted)})


async def organizations(tx: Tx, consent_id: str) -> dict[str, frozenset[str]]:
    """Granted scopes by organization id."""
    sql = f"SELECT co.org_id, co.scopes AS org_scopes FROM {_FROM} WHERE c.id = :id"
    return _organization_scopes(await tx.all(sql, {"id": consent_id}))


async def set_organizations(tx: Tx, consent_id: str, granted: Mapping[str, Iterable[str]]) -> None:
    await tx.exec("DELETE FROM consent_organizations WHERE consent_id = :id", {"id": consent_id})
    # Joined with memberships, to skip an organization that was deleted or that the user has left since.
    sql = """
        INSERT INTO consent_organizations (consent_id, org_id, scopes, joined_at)
        SELECT c.id, m.org_id, :scopes, m.joined_at FROM consents c JOIN memberships m ON m.user_id = c.user_id
        WHERE c.id = :id AND m.org_id = :org_id
    """
    rows = [{"id": consent_id, "org_id": org, "scopes": join_scopes(granted[org])} for org in sorted(granted)]
    await tx.exec_many(sql, rows)


async def lock_for_change(tx: Tx, user_id: str, client_id: str, now: int) -> bool:
    """Lock the consent for a change, until the transaction ends; False if there is none."""
    sql = "UPDATE consents SET updated_at = :now WHERE user_id = :user_id AND client_id = :client_id"
    return await tx.exec(sql, {"user_id": user_id, "client_id": client_id, "now": now}) == 1


async def record_use(tx: Tx, consent_id: str, now: int) -> bool:
    """Set last_used_at and lock the consent until the transaction ends; False if it was deleted."""
    sql = "UPDATE consents SET last_used_at = :now WHERE id = :id"
    return await tx.exec(sql, {"id": consent_id, "now": now}) == 1


async def remove(tx: Tx, user_id: str, client_id: str) -> bool:
    """Delete the consent; its codes and tokens cascade."""
    sql = "DELETE FROM consents WHERE user_id = :user_id AND client_id = :client_id"
    return await tx.exec(sql, {"user_id": user_id, "client_id": client_id}) == 1


async def count_app_users(tx: Tx, client_id: str) -> int:
    row = await tx.one("SELECT count(*) AS users FROM consents WHERE client_id = :client_id", {"client_id": client_id})
    return row["users"] if row else 0


async def remove_scope(tx: Tx, client_id: str, scope: str) -> None:
    """Remove a scope of this hub from all consents; live tokens lose it at the next request."""
    values = {"client_id": client_id, "scope": f" {scope} "}
    without_scope = "scopes = TRIM(REPLACE(' ' || scopes || ' ', :scope, ' '))"
    await tx.exec(f"UPDATE consents SET {without_scope} WHERE client_id = :client_id", values)
    of_client = "SELECT id FROM consents WHERE client_id = :client_id"
    sql = f"UPDATE consent_organizations SET {without_scope} WHERE consent_id IN ({of_client})"
    await tx.exec(sql, values)


async def delete_app_consents(tx: Tx, client_id: str) -> None:
    await tx.exec("DELETE FROM consents WHERE client_id = :client_id", {"client_id": client_id})


def _consents(rows: Iterable[Row]) -> list[Consent]:
    """Build consents from rows, one row for each organization of a consent."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["id"], []).append(row)
    return [
        Consent(
            id=same[0]["id"],
            user_id=same[0]["user_id"],
            client_id=same[0]["client_id"],
            scopes=frozenset(parse_scopes(same[0]["scopes"])),
            resource_scopes=read_resource_scopes(same[0]["resource_scopes"]),
            organizations=_organization_scopes(same),
            face=same[0]["face"],
            app_name=same[0]["app_name"],
            created_at=same[0]["created_at"],
            updated_at=same[0]["updated_at"],
            last_used_at=same[0]["last_used_at"],
        )
        for same in found.values()
    ]


def _organization_scopes(rows: Iterable[Row]) -> dict[str, frozenset[str]]:
    return {row["org_id"]: frozenset(parse_scopes(row["org_scopes"])) for row in rows if row["org_id"] is not None}


def _connected(consent: Consent, row: Row) -> AppConnection:
    if row["redirect_uris"] is None:
        return AppConnection(consent)
    return AppConnection(
        consent,
        tuple(json.loads(row["redirect_uris"])),
        frozenset(parse_scopes(row["app_scopes"])) | frozenset(parse_scopes(row["app_extra_scopes"])),
        frozenset(parse_scopes(row["app_required_scopes"])),
    )


async def count_tokens(tx: Tx, consent_id: str, now: int) -> int:
    """The number of unexpired access and refresh tokens."""
    sql = """
        SELECT (SELECT count(*) FROM app_tokens t WHERE t.consent_id = :id AND t.expires_at > :now)
            + (SELECT count(*) FROM refresh_tokens r WHERE r.consent_id = :id AND r.expires_at > :now) AS tokens
    """
    row = await tx.one(sql, {"id": consent_id, "now": now})
    return row["tokens"] if row else 0


async def find_approval(db: Database, consent_id: str, shown: ConsentDetails) -> Row | None:
    sql = "SELECT scopes FROM consent_approvals WHERE consent_id = :consent_id AND shown = :shown"
    return await db.one(sql, {"consent_id": consent_id, "shown": shown.key})


async def approvals_of(tx: Tx, consent_id: str) -> list[Row]:
    sql = "SELECT shown, resources, scopes FROM consent_approvals WHERE consent_id = :consent_id"
    return list(await tx.all(sql, {"consent_id": consent_id}))


async def set_approval_scopes(tx: Tx, consent_id: str, scopes_of: dict[str, str]) -> None:
    """Update several approvals; `scopes_of` maps the key of an approval to its scopes."""
    await tx.exec_many(
        "UPDATE consent_approvals SET scopes = :scopes WHERE consent_id = :consent_id AND shown = :shown",
        [{"consent_id": consent_id, "shown": shown, "scopes": scopes} for shown, scopes in scopes_of.items()],
    )


_SAVE_APPROVAL = insert_row(
    "INSERT INTO consent_approvals (consent_id, shown, resources, redirect_uri, scopes, approved_at)",
    "ON CONFLICT (consent_id, shown) DO UPDATE SET scopes = excluded.scopes, approved_at = excluded.approved_at",
)


async def save_approval(tx: Tx, consent_id: str, shown: ConsentDetails, scopes: str, now: int) -> None:
    await tx.exec(
        _SAVE_APPROVAL,
        {
            "consent_id": consent_id,
            "shown": shown.key,
            "resources": shown.resources,
            "redirect_uri": shown.redirect_uri,
            "scopes": scopes,
            "approved_at": now,
        },
    )


async def drop_oldest_approvals(tx: Tx, consent_id: str, limit: int) -> None:
    """Delete all but the newest `limit` approvals. A consent never has 1,000 more than that."""
    await tx.exec(
        """
        DELETE FROM consent_approvals WHERE consent_id = :consent_id AND shown IN (
            SELECT shown FROM consent_approvals WHERE consent_id = :consent_id
            ORDER BY approved_at DESC, shown LIMIT 1000 OFFSET :limit
        )
        """,
        {"consent_id": consent_id, "limit": limit},
    )
