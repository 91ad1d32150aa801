"""SQL statements for signing keys."""

from msgspec.structs import asdict

from hubgate.server.oauth.keys.model import SigningKey
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import insert_row

_COLUMNS = "kid, seq, algorithm, public_jwk, sealed_private, created_at, signs_from, published_until, revoked_at"

_ADD = insert_row(f"INSERT INTO signing_keys ({_COLUMNS})", "ON CONFLICT DO NOTHING RETURNING kid")


_LIST = f"SELECT {_COLUMNS} FROM signing_keys ORDER BY seq"


async def list_all(tx: Tx) -> list[SigningKey]:
    return [_key(row) for row in await tx.all(_LIST)]


async def look_up(db: Database) -> list[SigningKey]:
    """Like `list_all`, outside of a unit."""
    return [_key(row) for row in await db.few(_LIST)]


async def add(tx: Tx, key: SigningKey) -> bool:
    """Add a key; False if another process has taken its `seq`."""
    return await tx.one(_ADD, asdict(key)) is not None


async def retire_before(tx: Tx, key: SigningKey, published_until: int) -> None:
    """Retire the older keys of the same algorithm."""
    await tx.exec(
        """
        UPDATE signing_keys SET published_until = :until
        WHERE seq < :seq AND algorithm = :algorithm AND published_until IS NULL
        """,
        {"until": published_until, "seq": key.seq, "algorithm": key.algorithm},
    )


async def revoke(tx: Tx, kid: str, now: int) -> bool:
    row = await tx.one(
        "UPDATE signing_keys SET revoked_at = :now WHERE kid = :kid AND revoked_at IS NULL RETURNING kid",
        {"kid": kid, "now": now},
    )
    return row is not None


async def set_signs_from(tx: Tx, kid: str, now: int) -> None:
    await tx.exec("UPDATE signing_keys SET signs_from = :now WHERE kid = :kid", {"kid": kid, "now": now})


async def replace_sealed(tx: Tx, kid: str, old: bytes, new: bytes) -> bool:
    row = await tx.one(
        "UPDATE signing_keys SET sealed_private = :new WHERE kid = :kid AND sealed_private = :old RETURNING kid",
        {"kid": kid, "old": old, "new": new},
    )
    return row is not None


def _key(row: Row) -> SigningKey:
    return SigningKey(*row)
