"""Statements on device codes."""

from dataclasses import fields
from typing import Literal

from hubgate.server.oauth.device.model import APPROVED, CONSUMED, PENDING, DeviceCode
from hubgate.server.storage.database import Batch, Database, Tx

TABLE = "device_codes"
_COLUMNS = ", ".join(field.name for field in fields(DeviceCode))
# Many devices may start at once; the rest is null until somebody asks or decides.
_BEGUN: dict[str, Literal["text", "bytea", "bigint"]] = {
    "key": "bytea",
    "user_code": "bytea",
    "client_id": "text",
    "app_id": "text",
    "scopes": "text",
    "state": "text",
    "interval": "bigint",
    "ip": "text",
    "user_agent": "text",
    "created_at": "bigint",
    "expires_at": "bigint",
    "resources": "text",
}
_BEGIN = Batch(
    name="device_codes.add",
    key="key",
    columns=_BEGUN,
    sql=f"""
    INSERT INTO device_codes ({", ".join(_BEGUN)}) SELECT {", ".join(f"batch.{column}" for column in _BEGUN)} FROM batch
    WHERE true ON CONFLICT DO NOTHING RETURNING key
    """,
)


async def add(db: Database, code: DeviceCode) -> bool:
    """False if the user code is in use; ConstraintViolated if the app is gone."""
    return await db.batch(_BEGIN, {column: getattr(code, column) for column in _BEGUN}) is not None


async def hold(tx: Tx, key: bytes) -> DeviceCode | None:
    """As it is now; nobody decides or asks about it until this unit ends."""
    row = await tx.one(f"UPDATE device_codes SET state = state WHERE key = :key RETURNING {_COLUMNS}", {"key": key})
    return DeviceCode(*row) if row else None


async def waiting(db: Database, user_code: bytes, now: int) -> DeviceCode | None:
    row = await db.one(
        f"""
        SELECT {_COLUMNS} FROM device_codes WHERE user_code = :user_code AND state = '{PENDING}' AND expires_at > :now
        """,
        {"user_code": user_code, "now": now},
    )
    return DeviceCode(*row) if row else None


async def decided_by(db: Database, user_code: bytes, user_id: str) -> str | None:
    """What became of a code that this user decided about; the state, as long as it is remembered."""
    sql = "SELECT state FROM device_codes WHERE user_code = :user_code AND user_id = :user_id"
    row = await db.one(sql, {"user_code": user_code, "user_id": user_id})
    return row["state"] if row else None


async def decide(
    tx: Tx, key: bytes, state: str, user_id: str, consent_id: str | None, scopes: str, auth_time: int, now: int
) -> bool:
    """Of several decisions the first stands; False for the others."""
    row = await tx.one(
        f"""
        UPDATE device_codes
        SET state = :state, user_id = :user_id, consent_id = :consent_id, scopes = :scopes, auth_time = :auth_time
        WHERE key = :key AND state = '{PENDING}' AND expires_at > :now RETURNING key
        """,
        {
            "key": key,
            "state": state,
            "user_id": user_id,
            "consent_id": consent_id,
            "scopes": scopes,
            "auth_time": auth_time,
            "now": now,
        },
    )
    return row is not None


async def consume(tx: Tx, key: bytes) -> bool:
    """Of several polls one gets the token."""
    sql = f"UPDATE device_codes SET state = '{CONSUMED}' WHERE key = :key AND state = '{APPROVED}' RETURNING key"
    return await tx.one(sql, {"key": key}) is not None


async def end_of_user(tx: Tx, user_id: str) -> None:
    """Those that this user decided about and whose tokens may not have been fetched."""
    await tx.exec("DELETE FROM device_codes WHERE user_id = :user_id", {"user_id": user_id})


async def note_poll(tx: Tx, key: bytes, interval: int, now: int) -> None:
    await tx.exec(
        "UPDATE device_codes SET polled_at = :now, interval = :interval WHERE key = :key",
        {"key": key, "interval": interval, "now": now},
    )
