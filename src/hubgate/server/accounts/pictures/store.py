"""SQL statements on pictures."""

from msgspec.structs import asdict

from hubgate.server.accounts.pictures.model import SMALL, Picture, PictureOwner
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row

_PUT = insert_row(
    "INSERT INTO pictures (owner_id, user_id, org_id, client_id, id, small, large, created_at)",
    "ON CONFLICT (owner_id) DO UPDATE SET id = excluded.id, small = excluded.small, large = excluded.large, "
    "created_at = excluded.created_at",
)


async def put(tx: Tx, owner: PictureOwner, picture: Picture, now: int) -> None:
    """Add a picture, or replace the owner's current one."""
    await tx.exec(_PUT, {"owner_id": owner.id, **asdict(owner), **asdict(picture), "created_at": now})


async def remove(tx: Tx, owner_id: str) -> bool:
    """Whether there was a picture."""
    return await tx.one("DELETE FROM pictures WHERE owner_id = :id RETURNING owner_id", {"id": owner_id}) is not None


async def id_of(db: Database, owner_id: str) -> str | None:
    """The id of the owner's picture."""
    row = await db.one("SELECT id FROM pictures WHERE owner_id = :id", {"id": owner_id})
    return row["id"] if row else None


async def content_of(db: Database, owner_id: str, size: int) -> tuple[str, bytes] | None:
    """The id of the owner's picture, and its content in this size."""
    column = "small" if size == SMALL else "large"
    row = await db.one(f"SELECT id, {column} AS content FROM pictures WHERE owner_id = :id", {"id": owner_id})
    return (row["id"], bytes(row["content"])) if row else None
