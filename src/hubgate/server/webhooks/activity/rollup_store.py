"""SQL statements of the hourly roll-up. Each uses an index: a webhook may have millions of deliveries."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.clock import HOUR
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of
from hubgate.server.webhooks.activity.durations import LIMITS
from hubgate.server.webhooks.deliveries_store import ALIVE
from hubgate.server.webhooks.model import CANCELLED, DELIVERED, FAILED, SKIPPED


class NewRange(Struct, frozen=True):
    """Deliveries of a webhook that the roll-up does not contain: numbers after `after`, up to `last_seq`."""

    webhook_id: str
    last_seq: int
    after: int


class HourRange(Struct, frozen=True):
    """The numbers of the deliveries of one hour, and how many there were when the sums were computed."""

    webhook_id: str
    hour: int
    first_seq: int
    last_seq: int
    total: int = 0


async def webhooks_after(tx: Tx, after: str, limit: int) -> list[NewRange]:
    """The next webhooks in the order of their ids."""
    rows = await tx.all(
        """
        SELECT w.id, w.last_seq, COALESCE(
            (SELECT max(h.last_seq) FROM delivery_hours h WHERE h.webhook_id = w.id), 0
        ) AS after
        FROM webhooks w WHERE w.id > :after ORDER BY w.id LIMIT :limit
        """,
        {"after": after, "limit": limit},
    )
    return [NewRange(*row) for row in rows]


# Starts at the first delivery that still exists, because retention deletes old ones.
_NEW_HOURS = RowStatement(
    f"""
    SELECT CAST(:webhook_id AS text) AS webhook_id, d.created_at / {HOUR} * {HOUR} AS hour,
        min(d.seq) AS first_seq, max(d.seq) AS last_seq
    FROM deliveries d
    WHERE d.webhook_id = :webhook_id AND d.seq > :after AND d.seq < CAST(:at_once AS bigint) + (
        SELECT min(f.seq) FROM deliveries f WHERE f.webhook_id = :webhook_id AND f.seq > :after
    )
    GROUP BY d.created_at / {HOUR} * {HOUR}
    """,
    columns_of(text="webhook_id", bigint="after"),
)


async def new_hours(tx: Tx, new: Iterable[NewRange], at_once: int) -> list[HourRange]:
    """The hours of new deliveries, for at most `at_once` numbers of each webhook."""
    rows: list[Params] = [{"webhook_id": each.webhook_id, "after": each.after} for each in new]
    return [HourRange(*row) for row in (await tx.each(_NEW_HOURS, rows, {"at_once": at_once}) if rows else ())]


_EXTEND = RowStatement(
    """
    INSERT INTO delivery_hours (webhook_id, hour, first_seq, last_seq, next_at)
    SELECT :webhook_id, :hour, :first_seq, :last_seq, CAST(:now AS bigint) /*pg FROM batch */
    WHERE EXISTS (SELECT 1 FROM webhooks w WHERE w.id = :webhook_id)
    ON CONFLICT (webhook_id, hour) DO UPDATE SET
        first_seq = CASE WHEN excluded.first_seq < delivery_hours.first_seq
            THEN excluded.first_seq ELSE delivery_hours.first_seq END,
        last_seq = CASE WHEN excluded.last_seq > delivery_hours.last_seq
            THEN excluded.last_seq ELSE delivery_hours.last_seq END,
        next_at = COALESCE(delivery_hours.next_at, excluded.next_at)
    """,
    columns_of(text="webhook_id", bigint="hour first_seq last_seq"),
)
_DELETE_OLD = RowStatement(
    "DELETE FROM delivery_hours /*pg USING batch */ WHERE webhook_id = :webhook_id AND hour < CAST(:before AS bigint)",
    columns_of(text="webhook_id"),
)


async def extend(tx: Tx, hours: Sequence[HourRange], now: int) -> None:
    """Add hours, or extend them. Their sums are computed when they are next due."""
    await tx.each(_EXTEND, [asdict(hour) for hour in hours], {"now": now})


async def delete_old(tx: Tx, webhook_ids: Iterable[str], before: int) -> None:
    """Delete hours before `before`."""
    await tx.each(_DELETE_OLD, [{"webhook_id": each} for each in webhook_ids], {"before": before})


async def due_hours(tx: Tx, now: int, limit: int) -> list[HourRange]:
    rows = await tx.all(
        """
        SELECT webhook_id, hour, first_seq, last_seq, total FROM delivery_hours
        WHERE next_at <= :now ORDER BY next_at LIMIT :limit
        """,
        {"now": now, "limit": limit},
    )
    return [HourRange(*row) for row in rows]


def _count(condition: str, name: str) -> str:
    return f"COALESCE(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS {name}"


def _duration_counts() -> str:
    answered = "d.first_status IS NOT NULL AND"
    bounds = zip((None, *LIMITS), (*LIMITS, None), strict=True)
    conditions = [
        " AND ".join(
            part
            for part in (
                f"d.duration_ms > {above}" if above is not None else "",
                f"d.duration_ms <= {upto}" if upto is not None else "",
            )
            if part
        )
        for above, upto in bounds
    ]
    return ", ".join(_count(f"{answered} {each}", f"duration{number}") for number, each in enumerate(conditions))


_SUMS = RowStatement(
    f"""
    SELECT CAST(:webhook_id AS text) AS webhook_id, CAST(:hour AS bigint) AS hour, count(*) AS total,
        {_count(f"d.state = '{DELIVERED}'", "delivered")},
        {_count(f"d.state = '{FAILED}'", "failed")},
        {_count(f"d.{ALIVE} AND d.attempts > 0", "retrying")},
        {_count(f"d.{ALIVE} AND d.attempts = 0", "waiting")},
        {_count(f"d.state IN ('{SKIPPED}', '{CANCELLED}')", "skipped")},
        {_duration_counts()}
    FROM deliveries d
    WHERE d.webhook_id = :webhook_id AND d.seq >= :first_seq AND d.seq <= :last_seq
        AND d.created_at >= :hour AND d.created_at < CAST(:hour AS bigint) + {HOUR}
    """,
    columns_of(text="webhook_id", bigint="hour first_seq last_seq"),
)
SUMS = ("total", "delivered", "failed", "retrying", "waiting", "skipped")


async def sums(tx: Tx, hours: Iterable[HourRange]) -> dict[tuple[str, int], Row]:
    """By webhook and hour: SUMS, then the counts of durations."""
    rows = await tx.each(_SUMS, [asdict(hour) for hour in hours])
    return {(row["webhook_id"], row["hour"]): row for row in rows}


_STORE = RowStatement(
    f"""
    UPDATE delivery_hours SET {", ".join(f"{name} = :{name}" for name in SUMS)}, durations = :durations,
        next_at = :next_at /*pg FROM batch */
    WHERE webhook_id = :webhook_id AND hour = :hour AND first_seq = :first_seq AND last_seq = :last_seq
    """,
    columns_of(text="webhook_id durations", bigint=f"hour first_seq last_seq next_at {' '.join(SUMS)}"),
)


async def store(tx: Tx, rows: Sequence[Params]) -> None:
    """Store sums, except of hours that were extended since the sums were computed: these stay due."""
    await tx.each(_STORE, rows)


_CLOSE = RowStatement(
    """
    UPDATE delivery_hours SET next_at = NULL /*pg FROM batch */
    WHERE webhook_id = :webhook_id AND hour = :hour AND last_seq = :last_seq
    """,
    columns_of(text="webhook_id", bigint="hour last_seq"),
)


async def close(tx: Tx, hours: Iterable[HourRange]) -> None:
    """Make the stored sums of hours final."""
    rows: list[Params] = [
        {"webhook_id": each.webhook_id, "hour": each.hour, "last_seq": each.last_seq} for each in hours
    ]
    await tx.each(_CLOSE, rows)


async def of_webhook(tx: Tx, webhook_id: str, since: int) -> Sequence[Row]:
    return await tx.all(
        f"""
        SELECT hour, {", ".join(SUMS)}, durations FROM delivery_hours
        WHERE webhook_id = :id AND hour >= :since ORDER BY hour
        """,
        {"id": webhook_id, "since": since},
    )


async def of_owner(tx: Tx, user_id: str | None, org_id: str | None, since: int) -> Sequence[Row]:
    """webhook_id, hour, total of all webhooks of an owner."""
    return await tx.all(
        """
        SELECT h.webhook_id, h.hour, h.total FROM webhooks w
        JOIN delivery_hours h ON h.webhook_id = w.id AND h.hour >= :since
        WHERE w.user_id = :user_id OR w.org_id = :org_id
        """,
        {"user_id": user_id, "org_id": org_id, "since": since},
    )


async def compute_again(tx: Tx, webhook_id: str, now: int) -> None:
    """Make all hours of a webhook due, after old deliveries were queued again."""
    await tx.exec("UPDATE delivery_hours SET next_at = :now WHERE webhook_id = :id", {"id": webhook_id, "now": now})
