"""Statements that turn events into deliveries."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import asdict, fields

from hubgate.server.clock import HOUR
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of
from hubgate.server.webhooks.model import ENABLED, QUOTA_WINDOW
from hubgate.server.webhooks.requests.request import SETTINGS, WebhookSettings

# A webhook receives events that happened after it was created. Clocks that differ, or were set back, must not cost it
# an event: it also receives events of up to this long before, and all events if it was created in the future.
CLOCK_TOLERANCE = HOUR


class UnfannedEvent(Struct, frozen=True):
    """An event whose fan-out is not finished. It continues after the webhook `fan_cursor`."""

    id: str
    repo_id: str
    repo_seq: int
    repo_type: str
    owner_id: str
    private: int
    scope: str
    action: str
    body: bytes
    depth: int
    created_at: int
    fan_cursor: str | None
    # 1 if a user without write permission caused the event.
    guest: int
    # The current owner and visibility of the repo; those at the event if the repo was deleted.
    owner_now: str
    private_now: int

    @property
    def domain(self) -> str:
        return "discussion" if self.scope.startswith("discussion") else "repo"

    @property
    def is_move(self) -> bool:
        return (self.scope, self.action) == ("repo", "move")


_EVENT = ", ".join(f"e.{field.name}" for field in fields(UnfannedEvent) if not field.name.endswith("_now"))


async def has_unfanned(db: Database) -> bool:
    return await db.one("SELECT 1 FROM events WHERE fanned_at IS NULL LIMIT 1") is not None


async def unfanned(tx: Tx, after_repo: str, limit: int) -> list[UnfannedEvent]:
    """The next events, of repos after an id, in the order of repos and of the events of each repo."""
    rows = await tx.all(
        f"""
        SELECT {_EVENT}, COALESCE(r.owner_id, e.owner_id) AS owner_now, COALESCE(r.private, e.private) AS private_now
        FROM events e LEFT JOIN repos r ON r.id = e.repo_id
        WHERE e.fanned_at IS NULL AND e.repo_id > :after ORDER BY e.repo_id, e.repo_seq LIMIT :limit
        """,
        {"after": after_repo, "limit": limit},
    )
    return [UnfannedEvent(*row) for row in rows]


_ADVANCE = RowStatement(
    """
    UPDATE events SET fan_cursor = COALESCE(CAST(:cursor AS text), fan_cursor),
        fanned_at = CASE WHEN CAST(:cursor AS text) IS NULL THEN CAST(:now AS bigint) END /*pg FROM batch */
    WHERE id = :id AND fanned_at IS NULL AND COALESCE(fan_cursor, '') = :before
    """,
    columns_of(text="id cursor before"),
)


async def advance(tx: Tx, events: Iterable[tuple[UnfannedEvent, str | None]], now: int) -> None:
    """Store the new cursor of each event; None ends its fan-out. If two processes fan out the same event, the
    deliveries of the slower one are rejected as duplicates, and its unit fails.
    """
    rows: list[Params] = [
        {"id": event.id, "cursor": cursor, "before": event.fan_cursor or ""} for event, cursor in events
    ]
    await tx.each(_ADVANCE, rows, {"now": now})


# A window that starts in the future was started before a clock was set back.
_WINDOW_ENDED = "(quota_from <= :window OR quota_from > :ahead)"


def _used(column: str, added: str) -> str:
    return f"""
        CASE WHEN state <> '{ENABLED}' THEN {column} WHEN {_WINDOW_ENDED} THEN CAST(:{added} AS bigint)
            ELSE {column} + CAST(:{added} AS bigint) END
    """


# PostgreSQL locks the webhooks in the order of their ids, like all units that change several webhooks.
_RESERVE = RowStatement(
    f"""
    UPDATE webhooks SET
        last_seq = last_seq + CAST(:total AS bigint),
        last_trigger_at = :now,
        quota_used = {_used("quota_used", "quota")},
        guest_quota_used = {_used("guest_quota_used", "guest_quota")},
        quota_from = CASE WHEN state = '{ENABLED}' AND {_WINDOW_ENDED} THEN CAST(:now AS bigint) ELSE quota_from END
    /*pg FROM batch, (
        SELECT h.id AS locked_id FROM webhooks h JOIN batch b ON b.each_id = h.id ORDER BY h.id FOR NO KEY UPDATE OF h
    ) in_order */
    WHERE id = :id /*pg AND in_order.locked_id = id */
    RETURNING id, last_seq, quota_used, guest_quota_used,
        CASE WHEN skip_through > 0 OR requeue_since IS NOT NULL THEN 1 ELSE 0 END, {", ".join(SETTINGS)}
    """,
    columns_of(text="id", bigint="total quota guest_quota"),
)


class Reserved(Struct, frozen=True):
    """A webhook with the numbers after the new deliveries."""

    id: str
    last_seq: int
    quota_used: int
    guest_quota_used: int
    # Its backlog is being skipped or queued again.
    is_catching_up: int
    settings: WebhookSettings


class Counts(Struct):
    """New deliveries of a webhook: all, those that count towards its quota, and those towards its quota for guests."""

    total: int = 0
    quota: int = 0
    guest_quota: int = 0


async def reserve(tx: Tx, counts: Mapping[str, Counts], now: int) -> dict[str, Reserved]:
    """Reserve sequence numbers and quota for new deliveries of webhooks. Deleted webhooks are left out."""
    rows: list[Params] = [{"id": webhook_id, **asdict(each)} for webhook_id, each in counts.items()]
    times = {"now": now, "window": now - QUOTA_WINDOW, "ahead": now + CLOCK_TOLERANCE}
    found = await tx.each(_RESERVE, rows, times)
    return {row[0]: Reserved(row[0], row[1], row[2], row[3], row[4], WebhookSettings(*row[5:])) for row in found}
