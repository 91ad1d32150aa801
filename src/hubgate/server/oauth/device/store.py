"""SQL statements for device codes."""

from operator import attrgetter
from typing import Literal

from msgspec.structs import asdict, fields

from hubgate.server.clock import SECOND
from hubgate.server.oauth.device.model import APPROVED, CONSUMED, PENDING, TOLERANCE, Decision, DeviceCode
from hubgate.server.storage.database import Batch, Database, Tx

TABLE = "device_codes"
_COLUMNS = ", ".join(field.name for field in fields(DeviceCode))
# Inserted in batches, as many devices may start at once. Other columns are null until a poll or decision.
_ADDED: dict[str, Literal["text", "bytea", "bigint"]] = {
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
_ADD = Batch(
    name="device_codes.add",
    key="key",
    columns=_ADDED,
    sql=f"""
    INSERT INTO device_codes ({", ".join(_ADDED)}) SELECT {", ".join(f"batch.{column}" for column in _ADDED)} FROM batch
    WHERE true ON CONFLICT DO NOTHING RETURNING key
    """,
)


_added_values = attrgetter(*_ADDED)


async def add(db: Database, code: DeviceCode) -> bool:
    """Add a code; False if the user code is in use; ConstraintViolated if the app was deleted."""
    return await db.batch(_ADD, dict(zip(_ADDED, _added_values(code), strict=True))) is not None


# Nearly all polls: on time, before the decision. The condition is that of `DeviceCode.is_too_soon`.
_POLL = Batch(
    name="device_codes.poll",
    key="key",
    columns={"key": "bytea", "client_id": "text", "now": "bigint"},
    sql=f"""
    UPDATE device_codes SET polled_at = batch.now FROM batch
    WHERE device_codes.key = batch.key AND device_codes.client_id = batch.client_id
        AND device_codes.state = '{PENDING}' AND device_codes.expires_at > batch.now
        AND (device_codes.polled_at IS NULL
            OR batch.now - device_codes.polled_at >= device_codes.interval * {SECOND} - {TOLERANCE})
    RETURNING device_codes.key
    """,
)


async def poll_in_time(db: Database, key: bytes, client_id: str, now: int) -> bool:
    """Record a poll; False if it was too early, or the code is unknown, expired, of another app or decided."""
    return await db.batch(_POLL, {"key": key, "client_id": client_id, "now": now}) is not None


async def lock(tx: Tx, key: bytes) -> DeviceCode | None:
    """Lock the code until the transaction ends, and return its latest state."""
    row = await tx.one(f"UPDATE device_codes SET state = state WHERE key = :key RETURNING {_COLUMNS}", {"key": key})
    return DeviceCode(*row) if row else None


async def pending(db: Database, user_code: bytes, now: int) -> DeviceCode | None:
    row = await db.one(
        f"""
        SELECT {_COLUMNS} FROM device_codes WHERE user_code = :user_code AND state = '{PENDING}' AND expires_at > :now
        """,
        {"user_code": user_code, "now": now},
    )
    return DeviceCode(*row) if row else None


async def decided_by(db: Database, user_code: bytes, user_id: str) -> str | None:
    """The state of a code that this user has approved or denied; None if there is no such code."""
    sql = "SELECT state FROM device_codes WHERE user_code = :user_code AND user_id = :user_id"
    row = await db.one(sql, {"user_code": user_code, "user_id": user_id})
    return row["state"] if row else None


async def decide(tx: Tx, key: bytes, decision: Decision, now: int) -> bool:
    """Store the decision; of concurrent decisions the first wins, False for the others."""
    row = await tx.one(
        f"""
        UPDATE device_codes
        SET state = :state, user_id = :user_id, consent_id = :consent_id, scopes = :scopes, resources = :resources,
            auth_time = :auth_time
        WHERE key = :key AND state = '{PENDING}' AND expires_at > :now RETURNING key
        """,
        {"key": key, "now": now, **asdict(decision)},
    )
    return row is not None


async def consume(tx: Tx, key: bytes) -> bool:
    """Mark the code as consumed; of concurrent polls only one gets True."""
    sql = f"UPDATE device_codes SET state = '{CONSUMED}' WHERE key = :key AND state = '{APPROVED}' RETURNING key"
    return await tx.one(sql, {"key": key}) is not None


async def delete_decided_by(tx: Tx, user_id: str) -> None:
    """Delete codes that this user has approved or denied: a device may not have fetched its tokens yet."""
    await tx.exec("DELETE FROM device_codes WHERE user_id = :user_id", {"user_id": user_id})


async def record_poll(tx: Tx, key: bytes, interval: int, now: int) -> None:
    await tx.exec(
        "UPDATE device_codes SET polled_at = :now, interval = :interval WHERE key = :key",
        {"key": key, "interval": interval, "now": now},
    )
