"""SQL statements for resource servers and their secrets."""

import json
from typing import Any

from msgspec.structs import fields

from hubgate.server.oauth.resource_servers.model import ResourceScope, ResourceServer
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_FIELDS = tuple(field.name for field in fields(ResourceServer))
_COLUMNS = ", ".join(_FIELDS)
_JOINED = ", ".join(f"r.{name}" for name in _FIELDS)

_ADD = insert_row(
    f"INSERT INTO resource_servers ({_COLUMNS}, uri, verified_uri)", "ON CONFLICT DO NOTHING RETURNING id"
)
_ADD_SECRET = insert_row("INSERT INTO resource_secrets (key, resource_id, created_at)")


async def find(tx: Tx | Database, server_id: str) -> ResourceServer | None:
    row = await tx.one(f"SELECT {_COLUMNS} FROM resource_servers WHERE id = :id", {"id": server_id})
    return _server(row) if row else None


async def find_verified(tx: Tx | Database, uri: str) -> ResourceServer | None:
    row = await tx.one(f"SELECT {_COLUMNS} FROM resource_servers WHERE verified_uri = :uri", {"uri": uri})
    return _server(row) if row else None


async def find_of_user(tx: Tx | Database, uri: str, user_id: str) -> ResourceServer | None:
    """The user's own registration of a URI, verified or not."""
    sql = f"SELECT {_COLUMNS} FROM resource_servers WHERE uri = :uri AND owner_id = :user_id"
    row = await tx.one(sql, {"uri": uri, "user_id": user_id})
    return _server(row) if row else None


async def find_with_secret(db: Database, server_id: str, key: bytes, now: int) -> ResourceServer | None:
    """The server if the secret is valid. A lookup by hash reveals nothing through timing."""
    row = await db.one(
        f"""
        SELECT {_JOINED} FROM resource_secrets s JOIN resource_servers r ON r.id = s.resource_id
        WHERE s.key = :key AND s.resource_id = :id AND (s.expires_at IS NULL OR s.expires_at > :now)
        """,
        {"id": server_id, "key": key, "now": now},
    )
    return _server(row) if row else None


async def of_owner(tx: Tx, owner_id: str | None, org_id: str | None) -> list[ResourceServer]:
    """The resource servers of a user or an organization, oldest first."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM resource_servers WHERE owner_id = :owner_id OR org_id = :org_id ORDER BY id",
        {"owner_id": owner_id, "org_id": org_id},
    )
    return [_server(row) for row in rows]


async def named(tx: Tx, uri: str) -> list[ResourceServer]:
    """Every registration of a URI, oldest first."""
    rows = await tx.all(f"SELECT {_COLUMNS} FROM resource_servers WHERE uri = :uri ORDER BY id", {"uri": uri})
    return [_server(row) for row in rows]


async def list_all(tx: Tx) -> list[ResourceServer]:
    """Every registration, oldest first, for the operator's command."""
    return [_server(row) for row in await tx.all(f"SELECT {_COLUMNS} FROM resource_servers ORDER BY id")]


async def count_of_owner(tx: Tx, owner_id: str | None, org_id: str | None) -> int:
    sql = "SELECT count(*) AS servers FROM resource_servers WHERE owner_id = :owner_id OR org_id = :org_id"
    row = await tx.one(sql, {"owner_id": owner_id, "org_id": org_id})
    return row["servers"] if row else 0


async def lock(tx: Tx, server_id: str) -> ResourceServer | None:
    """Lock the server until the transaction ends, and return its latest state."""
    sql = f"UPDATE resource_servers SET name = name WHERE id = :id RETURNING {_COLUMNS}"
    row = await tx.one(sql, {"id": server_id})
    return _server(row) if row else None


async def add(tx: Tx, server: ResourceServer) -> bool:
    """Add a server; False if the owner has one with this URI, or another owner has verified the URI."""
    return await tx.one(_ADD, _row(server)) is not None


async def update(tx: Tx, server: ResourceServer) -> None:
    values: Params = {"id": server.id, "name": server.name, "scopes": _encode(server.scopes), "tokens": server.tokens}
    await tx.exec("UPDATE resource_servers SET name = :name, scopes = :scopes, tokens = :tokens WHERE id = :id", values)


async def set_verified(tx: Tx, server_id: str, now: int) -> bool:
    """Mark the identifier as proved; False if another owner has proved it before. Of concurrent calls the first wins:
    `verified_uri` is unique.
    """
    row = await tx.one(
        """
        UPDATE resource_servers SET verified_at = :now, verified_uri = uri WHERE id = :id
            AND NOT EXISTS (SELECT 1 FROM resource_servers o WHERE o.verified_uri = resource_servers.uri)
        RETURNING id
        """,
        {"id": server_id, "now": now},
    )
    return row is not None


async def remove(tx: Tx, server_id: str) -> bool:
    """Delete a server; its secrets cascade."""
    return await tx.exec("DELETE FROM resource_servers WHERE id = :id", {"id": server_id}) == 1


async def add_secret(tx: Tx, server_id: str, key: bytes, now: int) -> None:
    await tx.exec(_ADD_SECRET, {"key": key, "resource_id": server_id, "created_at": now})


async def expire_secrets(tx: Tx, server_id: str, expires_at: int) -> None:
    """Make every valid secret expire at `expires_at` at the latest."""
    await tx.exec(
        """
        UPDATE resource_secrets SET expires_at = :expires_at
        WHERE resource_id = :id AND (expires_at IS NULL OR expires_at > :expires_at)
        """,
        {"id": server_id, "expires_at": expires_at},
    )


async def old_secrets(tx: Tx, server_id: str, now: int) -> list[int]:
    """When each replaced secret expires that is still valid, the soonest first."""
    sql = "SELECT expires_at FROM resource_secrets WHERE resource_id = :id AND expires_at > :now ORDER BY expires_at"
    return [row["expires_at"] for row in await tx.all(sql, {"id": server_id, "now": now})]


async def drop_expired_secrets(tx: Tx, now: int, limit: int) -> int:
    return await tx.exec(
        """
        DELETE FROM resource_secrets WHERE key IN
            (SELECT key FROM resource_secrets WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )


def _server(row: Row) -> ResourceServer:
    values = {name: row[name] for name in _FIELDS}
    scopes = tuple(ResourceScope(name, text) for name, text in json.loads(row["scopes"]))
    return ResourceServer(**{**values, "scopes": scopes})


def _row(server: ResourceServer) -> dict[str, Any]:
    values = {name: getattr(server, name) for name in _FIELDS}
    verified_uri = server.uri if server.verified_at is not None else None
    return {**values, "scopes": _encode(server.scopes), "uri": server.uri, "verified_uri": verified_uri}


def _encode(scopes: tuple[ResourceScope, ...]) -> str:
    return json.dumps([[scope.name, scope.text] for scope in scopes])
