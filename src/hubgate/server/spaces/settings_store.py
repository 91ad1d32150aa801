"""Statements on the secrets and variables of Spaces."""

from collections.abc import Sequence

from hubgate.server.spaces.model import Setting
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_REPLACE = """
    ON CONFLICT (repo_id, key) DO UPDATE SET value = excluded.value, description = excluded.description,
        updated_at = excluded.updated_at
"""
_COLUMNS = "(repo_id, key, value, description, updated_at)"
_PUT_SECRET = insert_row(f"INSERT INTO space_secrets {_COLUMNS}", _REPLACE)
_PUT_VARIABLE = insert_row(f"INSERT INTO space_variables {_COLUMNS}", _REPLACE)


async def put_secret(tx: Tx, repo_id: str, key: str, sealed: bytes, description: str, now: int) -> None:
    values: Params = {"repo_id": repo_id, "key": key, "value": sealed, "description": description, "updated_at": now}
    await tx.exec(_PUT_SECRET, values)


async def put_variable(tx: Tx, repo_id: str, key: str, value: str, description: str, now: int) -> None:
    values: Params = {"repo_id": repo_id, "key": key, "value": value, "description": description, "updated_at": now}
    await tx.exec(_PUT_VARIABLE, values)


async def remove_secret(tx: Tx, repo_id: str, key: str) -> bool:
    sql = "DELETE FROM space_secrets WHERE repo_id = :repo_id AND key = :key"
    return await tx.exec(sql, {"repo_id": repo_id, "key": key}) == 1


async def remove_variable(tx: Tx, repo_id: str, key: str) -> bool:
    sql = "DELETE FROM space_variables WHERE repo_id = :repo_id AND key = :key"
    return await tx.exec(sql, {"repo_id": repo_id, "key": key}) == 1


async def count_others(tx: Tx, repo_id: str, key: str) -> int:
    """The number of secrets and variables with other names."""
    row = await tx.one(
        """
        SELECT (SELECT count(*) FROM space_secrets WHERE repo_id = :repo_id AND key <> :key)
            + (SELECT count(*) FROM space_variables WHERE repo_id = :repo_id AND key <> :key) AS n
        """,
        {"repo_id": repo_id, "key": key},
    )
    return int(row["n"]) if row else 0


async def secrets(db: Database, repo_id: str) -> list[Setting]:
    """The secrets of a Space, without their values."""
    sql = "SELECT key, description, updated_at FROM space_secrets WHERE repo_id = :repo_id ORDER BY key"
    rows = await db.few(sql, {"repo_id": repo_id})
    return [Setting(row["key"], None, row["description"], row["updated_at"]) for row in rows]


async def variables(db: Database, repo_id: str) -> list[Setting]:
    sql = "SELECT key, value, description, updated_at FROM space_variables WHERE repo_id = :repo_id ORDER BY key"
    return [Setting(*row) for row in await db.few(sql, {"repo_id": repo_id})]


async def sealed_secrets(db: Database, repo_id: str) -> list[tuple[str, bytes]]:
    sql = "SELECT key, value FROM space_secrets WHERE repo_id = :repo_id ORDER BY key"
    return [(row["key"], bytes(row["value"])) for row in await db.few(sql, {"repo_id": repo_id})]


async def all_sealed(tx: Tx, after: tuple[str, str], limit: int) -> Sequence[Row]:
    """Secrets of all Spaces after (repo, key), in that order."""
    sql = """
    SELECT repo_id, key, value FROM space_secrets WHERE (repo_id, key) > (:repo_id, :key)
    ORDER BY repo_id, key LIMIT :limit
    """
    return await tx.all(sql, {"repo_id": after[0], "key": after[1], "limit": limit})


async def replace_sealed(tx: Tx, repo_id: str, key: str, old: bytes, new: bytes) -> bool:
    sql = "UPDATE space_secrets SET value = :new WHERE repo_id = :repo_id AND key = :key AND value = :old"
    return await tx.exec(sql, {"repo_id": repo_id, "key": key, "old": old, "new": new}) == 1
