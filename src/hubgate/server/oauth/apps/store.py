"""SQL statements for registered apps and their secrets."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hubgate.server.oauth.apps.fields import DEFAULT_SCOPES
from hubgate.server.oauth.apps.model import App, ExchangeSettings
from hubgate.server.scopes import SCOPE_NAMES, join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_COLUMNS = """client_id, name, owner_id, org_id, homepage, redirect_uris, scopes, required_scopes, extra_scopes,
    confidential, token_lifetime, require_pkce, refresh_tokens, redirect_match, created_at, token_exchange,
    token_duration, allowed_scopes, allowed_roles, allowed_networks, daily_quota, paused,
    exchange_since, groups_claim, post_logout_redirect_uris, self_registered, id_token_signed_response_alg"""
_NAMES = tuple(column.strip() for column in _COLUMNS.split(","))
# For statements elsewhere that join apps as `a`. `app_of` reads them from the beginning of a row.
APP_COLUMNS = ", ".join(f"a.{name}" for name in _NAMES)
APP_COLUMN_COUNT = len(_NAMES)

_ADD = insert_row(f"INSERT INTO apps ({_COLUMNS})", "ON CONFLICT DO NOTHING RETURNING client_id")
_ADD_SECRET = insert_row("INSERT INTO app_secrets (key, client_id, last_four, created_at)")


_FIND = f"SELECT {_COLUMNS} FROM apps WHERE client_id = :client_id"
_FIND_WITH_SECRET = f"""
    SELECT {APP_COLUMNS} FROM app_secrets s JOIN apps a ON a.client_id = s.client_id
    WHERE s.key = :key AND s.client_id = :client_id AND (s.expires_at IS NULL OR s.expires_at > :now)
"""


async def find(tx: Tx | Database, client_id: str) -> App | None:
    row = await tx.one(_FIND, {"client_id": client_id})
    return app_of(row) if row else None


async def find_with_secret(db: Database, client_id: str, key: bytes, now: int) -> App | None:
    """The app if the secret is valid. A lookup by hash reveals nothing through timing."""
    row = await db.one(_FIND_WITH_SECRET, {"client_id": client_id, "key": key, "now": now})
    return app_of(row) if row else None


async def of_owner(tx: Tx, owner_id: str | None, org_id: str | None) -> list[App]:
    """The apps of a user or an organization."""
    rows = await tx.all(
        f"""
        SELECT {_COLUMNS} FROM apps WHERE (owner_id = :owner_id OR org_id = :org_id) ORDER BY created_at, client_id
        """,
        {"owner_id": owner_id, "org_id": org_id},
    )
    return [app_of(row) for row in rows]


async def lock(tx: Tx, client_id: str) -> App | None:
    """Lock the app until the transaction ends, and return its latest state."""
    sql = f"UPDATE apps SET paused = paused WHERE client_id = :client_id RETURNING {_COLUMNS}"
    row = await tx.one(sql, {"client_id": client_id})
    return app_of(row) if row else None


async def lock_extra_scopes(tx: Tx, client_id: str) -> tuple[str, ...]:
    """The operator-defined scopes of an app, which cannot be revoked until the transaction ends."""
    sql = "SELECT extra_scopes FROM apps WHERE client_id = :client_id /*pg FOR SHARE */"
    row = await tx.one(sql, {"client_id": client_id})
    return parse_scopes(row["extra_scopes"]) if row else ()


async def lock_owner_apps(tx: Tx, owner_id: str) -> list[App]:
    """Lock the apps of a user or an organization, ordered by client id, until the transaction ends."""
    sql = "SELECT client_id FROM apps WHERE owner_id = :owner_id OR org_id = :owner_id ORDER BY client_id"
    rows = await tx.all(sql, {"owner_id": owner_id})
    locked = [await lock(tx, row["client_id"]) for row in rows]
    return [app for app in locked if app is not None]


async def count_owner_apps(tx: Tx, owner_id: str | None, org_id: str | None) -> int:
    sql = "SELECT count(*) AS apps FROM apps WHERE owner_id = :owner_id OR org_id = :org_id"
    row = await tx.one(sql, {"owner_id": owner_id, "org_id": org_id})
    return row["apps"] if row else 0


async def list_all(tx: Tx, after: str, limit: int) -> list[App]:
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM apps WHERE client_id > :after ORDER BY client_id LIMIT :limit",
        {"after": after, "limit": limit},
    )
    return [app_of(row) for row in rows]


async def list_privileged(tx: Tx, after: str, limit: int) -> list[App]:
    """Apps that may exchange tokens or have operator-defined scopes, ordered by client id."""
    rows = await tx.all(
        f"""
        SELECT {_COLUMNS} FROM apps WHERE client_id > :after AND (token_exchange = 1 OR extra_scopes <> '')
        ORDER BY client_id LIMIT :limit
        """,
        {"after": after, "limit": limit},
    )
    return [app_of(row) for row in rows]


async def add(tx: Tx, app: App) -> bool:
    """Add an app; False if the client id is taken, which is possible only if an operator chose it."""
    return await tx.one(_ADD, _row(app)) is not None


async def update(tx: Tx, app: App) -> bool:
    changed = ", ".join(
        f"{column.strip()} = :{column.strip()}"
        for column in _COLUMNS.split(",")
        if column.strip() not in ("client_id", "owner_id", "org_id", "created_at")
    )
    row = {name: value for name, value in _row(app).items() if name not in ("owner_id", "org_id", "created_at")}
    return await tx.exec(f"UPDATE apps SET {changed} WHERE client_id = :client_id", row) == 1


async def remove(tx: Tx, client_id: str) -> bool:
    """Delete an app; its secrets cascade. The caller deletes consents, codes and tokens first."""
    return await tx.exec("DELETE FROM apps WHERE client_id = :client_id", {"client_id": client_id}) == 1


async def add_secret(tx: Tx, client_id: str, key: bytes, last_four: str, now: int) -> None:
    values: Params = {"key": key, "client_id": client_id, "last_four": last_four, "created_at": now}
    await tx.exec(_ADD_SECRET, values)


async def expire_secrets(tx: Tx, client_id: str, expires_at: int) -> None:
    """Make every valid secret expire at `expires_at` at the latest."""
    await tx.exec(
        """
        UPDATE app_secrets SET expires_at = :expires_at
        WHERE client_id = :client_id AND (expires_at IS NULL OR expires_at > :expires_at)
        """,
        {"client_id": client_id, "expires_at": expires_at},
    )


async def remove_old_secret(tx: Tx, client_id: str, last_four: str, now: int) -> bool:
    """Delete a replaced secret; False if no such secret is still valid."""
    sql = "DELETE FROM app_secrets WHERE client_id = :client_id AND last_four = :last_four AND expires_at > :now"
    return await tx.exec(sql, {"client_id": client_id, "last_four": last_four, "now": now}) > 0


async def remove_secrets(tx: Tx, client_id: str) -> None:
    await tx.exec("DELETE FROM app_secrets WHERE client_id = :client_id", {"client_id": client_id})


async def secrets_of(tx: Tx, client_id: str, now: int) -> Sequence[Row]:
    """last_four, created_at and expires_at of valid secrets, the current secret last."""
    return await tx.all(
        """
        SELECT last_four, created_at, expires_at FROM app_secrets
        WHERE client_id = :client_id AND (expires_at IS NULL OR expires_at > :now) ORDER BY created_at
        """,
        {"client_id": client_id, "now": now},
    )


async def drop_expired_secrets(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM app_secrets WHERE key IN
            (SELECT key FROM app_secrets WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


def app_of(row: Row) -> App:
    """The app in a row that begins with the columns of `APP_COLUMNS`."""
    return _app_of_values(row[:APP_COLUMN_COUNT])


@lru_cache(500)
def _app_of_values(values: tuple[Any, ...]) -> App:
    """Decode the columns of an app. A cached value is one of the very same columns, read for this request."""
    row = dict(zip(_NAMES, values, strict=True))
    scopes, self_registered = parse_scopes(row["scopes"]), bool(row["self_registered"])
    return App(
        client_id=row["client_id"],
        name=row["name"],
        homepage=row["homepage"],
        redirect_uris=tuple(json.loads(row["redirect_uris"])),
        post_logout_redirect_uris=tuple(json.loads(row["post_logout_redirect_uris"])),
        scopes=scopes,
        # A self-registered app that named no scopes has all of them; a request without `scope` gets few.
        default_scopes=DEFAULT_SCOPES if self_registered and SCOPE_NAMES.issubset(scopes) else None,
        self_registered=self_registered,
        required_scopes=parse_scopes(row["required_scopes"]),
        extra_scopes=parse_scopes(row["extra_scopes"]),
        confidential=bool(row["confidential"]),
        token_lifetime=row["token_lifetime"],
        require_pkce=bool(row["require_pkce"]),
        refresh_tokens=bool(row["refresh_tokens"]),
        groups_claim=bool(row["groups_claim"]),
        id_token_signed_response_alg=row["id_token_signed_response_alg"],
        redirect_match=row["redirect_match"],
        owner_id=row["owner_id"],
        org_id=row["org_id"],
        created_at=row["created_at"],
        exchange=ExchangeSettings(
            privileged=bool(row["token_exchange"]),
            duration=row["token_duration"],
            scopes=_decode_list(row["allowed_scopes"]),
            roles=_decode_list(row["allowed_roles"]),
            networks=_decode_list(row["allowed_networks"]),
            daily_quota=row["daily_quota"],
            paused=bool(row["paused"]),
            since=row["exchange_since"],
        ),
    )


def _row(app: App) -> dict[str, Any]:
    limits = app.exchange
    return {
        "client_id": app.client_id,
        "name": app.name,
        "owner_id": app.owner_id,
        "org_id": app.org_id,
        "homepage": app.homepage,
        "redirect_uris": json.dumps(app.redirect_uris),
        "post_logout_redirect_uris": json.dumps(app.post_logout_redirect_uris),
        "scopes": join_scopes(app.scopes),
        "required_scopes": join_scopes(app.required_scopes),
        "extra_scopes": join_scopes(app.extra_scopes),
        "confidential": int(app.confidential),
        "token_lifetime": app.token_lifetime,
        "require_pkce": int(app.require_pkce),
        "refresh_tokens": int(app.refresh_tokens),
        "groups_claim": int(app.groups_claim),
        "id_token_signed_response_alg": app.id_token_signed_response_alg,
        "redirect_match": app.redirect_match,
        "self_registered": int(app.self_registered),
        "created_at": app.created_at,
        "token_exchange": int(limits.privileged),
        "token_duration": limits.duration,
        "allowed_scopes": _encode_list(limits.scopes),
        "allowed_roles": _encode_list(limits.roles),
        "allowed_networks": _encode_list(limits.networks),
        "daily_quota": limits.daily_quota,
        "paused": int(limits.paused),
        "exchange_since": limits.since,
    }


def _decode_list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(json.loads(text))


def _encode_list(words: tuple[str, ...] | None) -> str | None:
    return None if words is None else json.dumps(words)
