"""Statements that turn events into deliveries."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import fields

from hubgate.server.clock import HOUR
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Kind, Params, RowStatement
from hubgate.server.webhooks.model import ENABLED, QUOTA_WINDOW
from hubgate.server.webhooks.permissions.store import could_read, may_read

# A webhook is told of what happened after it was made. A clock that was set back, or another machine's, must not cost
# it an event: what happened shortly before and is not fanned out yet is told too, and so is everything to one that was
# made in the future.
CLOCKS_DIFFER = HOUR


class Unfanned(Struct, frozen=True):
    """An event on its way, and how far it has come."""

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
    # 1 where a user without the right to write caused it.
    guest: int
    # Whose the repo is now, and whether for them alone; as it was at the event once the repo is gone.
    owner_now: str
    private_now: int

    @property
    def domain(self) -> str:
        return "discussion" if self.scope.startswith("discussion") else "repo"


_EVENT = ", ".join(f"e.{field.name}" for field in fields(Unfanned) if not field.name.endswith("_now"))


async def is_any(db: Database) -> bool:
    return await db.one("SELECT 1 FROM events WHERE fanned_at IS NULL LIMIT 1") is not None


async def unfanned(tx: Tx, after_repo: str, limit: int) -> list[Unfanned]:
    """Of each repo in order. The repos take turns: it goes on behind the one that came last."""
    rows = await tx.all(
        f"""
        SELECT {_EVENT}, COALESCE(r.owner_id, e.owner_id) AS owner_now, COALESCE(r.private, e.private) AS private_now
        FROM events e LEFT JOIN repos r ON r.id = e.repo_id
        WHERE e.fanned_at IS NULL AND e.repo_id > :after ORDER BY e.repo_id, e.repo_seq LIMIT :limit
        """,
        {"after": after_repo, "limit": limit},
    )
    return [Unfanned(*row) for row in rows]


class Called(Struct, frozen=True):
    """A repo's owner and name, which an event tells."""

    event: Unfanned
    owner_id: str
    name: str

    @property
    def params(self) -> Params:
        owner_key, _, repo_alone = self.name.lower().partition("/")
        return {
            "event_id": self.event.id,
            "event_at": self.event.created_at,
            "owner_id": self.owner_id,
            "owner_key": owner_key,
            "repo_id": self.event.repo_id,
            "repo_key": self.name.lower(),
            "repo_alone": repo_alone,
            "repo_type": self.event.repo_type,
        }


# Whoever has a name keeps it for as long as they are there, so times, which clocks and work under way put askew, are
# asked only about those that are gone: a watch that was made since is for whoever comes next.
_MADE_BEFORE = """
    CAST(:event_at AS bigint) >= COALESCE(x.made_at, (SELECT w.created_at FROM webhooks w WHERE w.id = x.webhook_id))
"""
_BINDS_TO_OWNER = f"""
    x.target_id IS NULL AND x.type = COALESCE((SELECT k.kind FROM names k WHERE k.owner_id = :owner_id LIMIT 1), 'user')
    AND x.key IN (SELECT CAST(:owner_key AS text) UNION SELECT n.key FROM names n WHERE n.owner_id = :owner_id)
    AND (EXISTS (SELECT 1 FROM names t WHERE t.owner_id = :owner_id AND t.key = x.key) OR {_MADE_BEFORE})
"""
_BINDS_TO_REPO = f"""
    x.target_id IS NULL AND x.type = :repo_type
    AND x.key IN (
        SELECT CAST(:repo_key AS text)
        UNION SELECT n.key || '/' || CAST(:repo_alone AS text) FROM names n WHERE n.owner_id = :owner_id
    )
    AND (EXISTS (SELECT 1 FROM repos t WHERE t.id = :repo_id) OR {_MADE_BEFORE})
"""
_WAITS_FOR_A_NAME = RowStatement(
    f"""
    SELECT CAST(:event_id AS text) AS event_id FROM (
        SELECT 1 FROM watches x WHERE {_BINDS_TO_OWNER}
        UNION ALL
        SELECT 1 FROM watches x WHERE {_BINDS_TO_REPO}
        LIMIT 1
    ) y
    """,
    {
        "event_id": "text",
        "event_at": "bigint",
        "owner_id": "text",
        "owner_key": "text",
        "repo_id": "text",
        "repo_key": "text",
        "repo_alone": "text",
        "repo_type": "text",
    },
)


async def wait_for_a_name(tx: Tx, named: Iterable[Called]) -> set[str]:
    """The ids of those events for which anyone watches a name that nobody had."""
    return {row["event_id"] for row in await tx.each(_WAITS_FOR_A_NAME, [called.params for called in named])}


_BIND = (
    f"UPDATE watches AS x SET target_id = :owner_id WHERE {_BINDS_TO_OWNER}",
    f"UPDATE watches AS x SET target_id = :repo_id WHERE {_BINDS_TO_REPO}",
)


async def bind(tx: Tx, called: Called) -> None:
    """Names that were watched before anyone had them. An account keeps its former names, so those count too."""
    for sql in _BIND:
        await tx.exec(sql, called.params)


# Each list ends by itself: one repo may have a hundred thousand watchers.
_NEXT = """
    SELECT DISTINCT x.webhook_id FROM watches x
    WHERE x.target_id = :{} AND x.webhook_id > :cursor ORDER BY x.webhook_id LIMIT :limit
"""


_KNOWS_NOW = may_read(":private", ":owner_id", ":repo_id")
_KNEW_THEN = could_read(":event_private", ":event_owner", ":repo_id")
_WATCHERS = RowStatement(
    f"""
    SELECT CAST(:event_id AS text) AS event_id, w.id, CASE WHEN (w.created_at <= :made_before OR w.created_at > :ahead)
        AND (' ' || w.domains || ' ') LIKE :domain AND {_KNOWS_NOW} AND {_KNEW_THEN} THEN 1 ELSE 0 END AS told
    FROM (
        SELECT webhook_id FROM ({_NEXT.format("repo_id")}) a
        UNION
        SELECT webhook_id FROM ({_NEXT.format("event_owner")}) b
        UNION
        SELECT webhook_id FROM ({_NEXT.format("new_owner")}) n
        ORDER BY webhook_id LIMIT :limit
    ) c JOIN webhooks w ON w.id = c.webhook_id ORDER BY w.id
    """,
    {
        "event_id": "text",
        "cursor": "text",
        "made_before": "bigint",
        "repo_id": "text",
        "event_owner": "text",
        "new_owner": "text",
        "event_private": "bigint",
        "domain": "text",
        "private": "bigint",
        "owner_id": "text",
    },
)


async def watchers(
    tx: Tx, events: Iterable[Unfanned], new_owners: Mapping[str, str], limit: int, now: int
) -> dict[str, list[Row]]:
    """By event the next of those who watch the repo or its owner, in order: id, and whether they are told."""
    rows: list[Params] = [
        {
            "event_id": event.id,
            "cursor": event.fan_cursor or "",
            "made_before": event.created_at + CLOCKS_DIFFER,
            "repo_id": event.repo_id,
            "event_owner": event.owner_id,
            # Who watches where a repo went is told that it came, as far as they might know where it was.
            "new_owner": new_owners.get(event.id, event.owner_id),
            "event_private": event.private,
            "domain": f"% {event.domain} %",
            "private": event.private_now,
            "owner_id": event.owner_now,
        }
        for event in events
    ]
    found: dict[str, list[Row]] = {str(row["event_id"]): [] for row in rows}
    for row in await tx.each(_WATCHERS, rows, {"limit": limit, "ahead": now + CLOCKS_DIFFER}):
        found[row["event_id"]].append(row)
    return found


_ADVANCE = RowStatement(
    """
    UPDATE events SET fan_cursor = COALESCE(CAST(:cursor AS text), fan_cursor),
        fanned_at = CASE WHEN CAST(:cursor AS text) IS NULL THEN CAST(:now AS bigint) END /*pg FROM batch */
    WHERE id = :id AND fanned_at IS NULL AND COALESCE(fan_cursor, '') = :before
    """,
    {"id": "text", "cursor": "text", "before": "text"},
)


async def advance(tx: Tx, events: Iterable[tuple[Unfanned, str | None]], now: int) -> None:
    """Each to its new cursor; None where it has reached everyone. From where it was only: of two processes that fan out
    the same, the slower one's deliveries are refused as duplicates, and it begins again.
    """
    rows: list[Params] = [
        {"id": event.id, "cursor": cursor, "before": event.fan_cursor or ""} for event, cursor in events
    ]
    await tx.each(_ADVANCE, rows, {"now": now})


# A window that begins in the future was begun by a clock that has been set back since.
_OVER = "(quota_from <= :window OR quota_from > :ahead)"


def _used(column: str, added: str) -> str:
    return f"""
        CASE WHEN state <> '{ENABLED}' THEN {column} WHEN {_OVER} THEN CAST(:{added} AS bigint)
            ELSE {column} + CAST(:{added} AS bigint) END
    """


# PostgreSQL locks the webhooks in the order of their ids, like everyone who changes several of them.
_NUMBER = RowStatement(
    f"""
    UPDATE webhooks SET
        last_seq = last_seq + CAST(:count AS bigint),
        last_trigger_at = :now,
        quota_used = {_used("quota_used", "counted")},
        guest_quota_used = {_used("guest_quota_used", "of_guests")},
        quota_from = CASE WHEN state = '{ENABLED}' AND {_OVER} THEN CAST(:now AS bigint) ELSE quota_from END
    /*pg FROM batch, (
        SELECT h.id AS held_id FROM webhooks h JOIN batch b ON b.each_id = h.id ORDER BY h.id FOR NO KEY UPDATE OF h
    ) held */
    WHERE id = :id /*pg AND held.held_id = id */
    RETURNING id, last_seq, quota_used, guest_quota_used, state, url
    """,
    {"id": "text", "count": "bigint", "counted": "bigint", "of_guests": "bigint"},
)


@dataclass(slots=True)
class Numbers:
    """Deliveries of a webhook: all, those that count towards its quota, and those towards the quota of guests."""

    count: int = 0
    counted: int = 0
    of_guests: int = 0


async def number(tx: Tx, counts: Mapping[str, Numbers], now: int) -> dict[str, Row]:
    """Reserve sequence numbers and quota for the new deliveries of each webhook. Returns, by id, the last number and
    the quotas used after these deliveries, state and url.
    """
    rows: list[Params] = [
        {"id": webhook_id, "count": each.count, "counted": each.counted, "of_guests": each.of_guests}
        for webhook_id, each in counts.items()
    ]
    moments = {"window": now - QUOTA_WINDOW, "ahead": now + CLOCKS_DIFFER}
    return {row["id"]: row for row in await tx.each(_NUMBER, rows, {"now": now, **moments})}


_KINDS: dict[str, Kind] = {
    "id": "text",
    "webhook_id": "text",
    "event_id": "text",
    "seq": "bigint",
    "repo_id": "text",
    "repo_seq": "bigint",
    "repo_type": "text",
    "repo_name": "text",
    "scope": "text",
    "action": "text",
    "depth": "bigint",
    "state": "text",
    "reason": "text",
    "due_at": "bigint",
    "ended_at": "bigint",
}
_ADD = RowStatement(
    f"""
    INSERT INTO deliveries ({", ".join(_KINDS)}, replay_of, is_test, attempts, created_at)
    SELECT {", ".join(f":{name}" for name in _KINDS)}, '', 0, 0, CAST(:now AS bigint) /*pg FROM batch */
    """,
    _KINDS,
)


async def add(tx: Tx, rows: Sequence[Params], now: int) -> None:
    await tx.each(_ADD, rows, {"now": now})
