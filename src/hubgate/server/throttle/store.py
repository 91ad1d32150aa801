"""SQL statements on rate-limit buckets."""

from hubgate.server.storage.database import Batch, Database, Tx
from hubgate.server.storage.sqltext import Params, insert_row

# A window starts with its first hit. One statement counts and returns the total, so parallel attempts cannot slip
# through. The rows of a batch are milliseconds apart and share the latest `now`: looking up each row's `now` would be
# quadratic.
TAKE = Batch(
    name="rate_limits.take",
    key="bucket",
    columns={"bucket": "bytea", "now": "bigint", "resets_at": "bigint"},
    sql="""
    INSERT INTO rate_limits (bucket, hits, resets_at)
    SELECT batch.bucket, 1, batch.resets_at FROM batch WHERE true
    ON CONFLICT (bucket) DO UPDATE SET
        hits = CASE WHEN rate_limits.resets_at <= (SELECT max(b.now) FROM batch b)
               THEN 1 ELSE rate_limits.hits + 1 END,
        resets_at = CASE WHEN rate_limits.resets_at <= (SELECT max(b.now) FROM batch b)
               THEN excluded.resets_at ELSE rate_limits.resets_at END
    RETURNING bucket, hits, resets_at
    """,
)


async def full_until(db: Database | Tx, bucket: bytes, limit: int, now: int) -> int | None:
    """When the current window ends, if its bucket is full; otherwise None."""
    row = await db.one(
        "SELECT resets_at FROM rate_limits WHERE bucket = :bucket AND hits >= :limit AND resets_at > :now",
        {"bucket": bucket, "limit": limit, "now": now},
    )
    return row["resets_at"] if row else None


_COUNT = insert_row(
    "INSERT INTO rate_limits (bucket, hits, resets_at)",
    """
    ON CONFLICT (bucket) DO UPDATE SET
        hits = CASE WHEN rate_limits.resets_at <= :now THEN 1 ELSE rate_limits.hits + 1 END,
        resets_at = CASE WHEN rate_limits.resets_at <= :now THEN excluded.resets_at ELSE rate_limits.resets_at END
    WHERE rate_limits.resets_at <= :now OR rate_limits.hits < :limit
    RETURNING bucket
    """,
)
_CLAIM = insert_row("INSERT INTO rate_limits (bucket, hits, resets_at)", "ON CONFLICT DO NOTHING RETURNING bucket")


async def count(tx: Tx, bucket: bytes, limit: int, now: int, resets_at: int) -> bool:
    """Count a hit in the transaction of the limited action; False if the bucket is full."""
    values: Params = {"bucket": bucket, "hits": 1, "resets_at": resets_at, "limit": limit, "now": now}
    return await tx.one(_COUNT, values) is not None


async def claim_bucket(tx: Tx, bucket: bytes, resets_at: int) -> bool:
    """Claim a bucket for a one-time action, in the transaction of that action; False if already claimed."""
    return await tx.one(_CLAIM, {"bucket": bucket, "hits": 1, "resets_at": resets_at}) is not None


async def refund(tx: Tx, bucket: bytes, resets_at: int) -> None:
    await tx.exec(
        "UPDATE rate_limits SET hits = hits - 1 WHERE bucket = :bucket AND resets_at = :resets_at AND hits > 0",
        {"bucket": bucket, "resets_at": resets_at},
    )


async def touch(tx: Tx, bucket: bytes) -> None:
    await tx.exec("UPDATE rate_limits SET hits = hits WHERE bucket = :bucket", {"bucket": bucket})


async def drop_expired(tx: Tx, now: int, limit: int) -> int:
    """Delete up to `limit` expired buckets, so that no writer waits long; returns how many were deleted."""
    return await tx.exec(
        """
        DELETE FROM rate_limits WHERE bucket IN
            (SELECT bucket FROM rate_limits WHERE resets_at <= :now ORDER BY resets_at LIMIT :limit)
        """,
        {"now": now, "limit": limit},
    )
