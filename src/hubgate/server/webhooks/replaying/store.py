"""SQL statements for replays of many deliveries."""

from collections.abc import Sequence

from msgspec.structs import asdict, fields

from hubgate.server.ids import first_id
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.webhooks.activity.store import visible_to_app
from hubgate.server.webhooks.deliveries_store import ABOUT, ALIVE, MAY_GO, RUN_OF
from hubgate.server.webhooks.model import CANCELLED, DELIVERED, DISABLED, ENABLED, SKIPPED, STORED
from hubgate.server.webhooks.replaying.model import Replay, Selection

# The copies of a replay `p` that wait for their first attempt. The first conditions are those of a partial index.
_WAITING = f"d.webhook_id = p.webhook_id AND d.{ALIVE} AND d.attempts = 0 AND d.replay_of <> '' AND {RUN_OF} = p.id"
_COUNT_WAITING = f"(SELECT count(*) FROM deliveries d WHERE {_WAITING})"
_STORED_COLUMNS = [field.name for field in fields(Replay) if field.name != "waiting"]
_COLUMNS = ", ".join(f"p.{name}" for name in _STORED_COLUMNS)
_WITH_WAITING = f"{_COLUMNS}, CASE WHEN p.state = 'running' THEN {_COUNT_WAITING} ELSE 0 END AS waiting"
_COPIED = "d.id, d.event_id, d.repo_id, d.repo_seq, d.repo_type, d.repo_name, d.scope, d.action, d.depth, d.is_test"

# An event that reached the receiver by another replay, or is about to, is not missing any more.
_REPLAYED = f"""
    EXISTS (
        SELECT 1 FROM deliveries x WHERE x.event_id = d.event_id AND x.webhook_id = d.webhook_id
            AND x.replay_of <> '' AND (x.state IN ('{DELIVERED}', '{STORED}') OR x.{ALIVE})
    )
"""
# Tests and replays are not replayed. Later failures belong to a later replay.
_SELECTED = f"""
    d.webhook_id = :webhook_id AND d.replay_of = '' AND d.is_test = 0 AND d.created_at >= :since
    AND CAST(:states AS text) LIKE '%' || d.state || '%' AND COALESCE(d.ended_at, d.created_at) <= :until
    AND (d.state IN ('{DELIVERED}', '{STORED}') OR NOT {_REPLAYED}) AND {MAY_GO} AND /*visible*/ 1 = 1
"""
_COUNT = f"""
    SELECT count(*) AS total, min(d.seq) AS first_seq, max(d.seq) AS last_seq FROM deliveries d {ABOUT}
    WHERE {_SELECTED}
"""
_NEXT = f"""
    SELECT {_COPIED}, d.body, d.seq FROM deliveries d {ABOUT}
    WHERE {_SELECTED} AND d.seq > :after AND d.seq <= :through ORDER BY d.seq LIMIT :limit
"""
_PICKED = f"""
    SELECT {_COPIED}, d.body, d.seq, d.state, CASE WHEN {MAY_GO} THEN 1 ELSE 0 END AS may_go
    FROM deliveries d {ABOUT} WHERE d.id = :id AND d.webhook_id = :webhook_id AND /*visible*/ 1 = 1
"""


def _values(webhook_id: str, selection: Selection, until: int) -> dict[str, str | int]:
    states = " ".join(selection.states)
    return {"webhook_id": webhook_id, "since": selection.since, "states": states, "until": until}


def _limited(sql: str, selection: Selection, values: dict[str, str | int]) -> str:
    if selection.visible is None:
        return sql
    return sql.replace("/*visible*/", f"{visible_to_app(selection.visible, values)} AND")


async def count(tx: Tx, webhook_id: str, selection: Selection, until: int) -> Row:
    """The number of selected deliveries as `total`, with `first_seq` and `last_seq`."""
    values = _values(webhook_id, selection, until)
    row = await tx.one(_limited(_COUNT, selection, values), values)
    assert row is not None, "an aggregate"  # noqa: S101
    return row


async def select(tx: Tx, replay: Replay, through: int, limit: int) -> Sequence[Row]:
    """Columns to copy of the next selected deliveries, up to the number `through`."""
    selection = replay.selection
    values = _values(replay.webhook_id, selection, replay.created_at)
    sql = _limited(_NEXT, selection, values)
    return await tx.all(sql, {**values, "after": replay.position, "through": through, "limit": limit})


async def select_picked(tx: Tx, webhook_id: str, ids: Sequence[str], selection: Selection) -> list[Row]:
    """The same of picked deliveries, in the order of their numbers. `may_go` is 0 if the repo may not be read."""
    found = []
    for each in ids:
        values: dict[str, str | int] = {"id": each, "webhook_id": webhook_id}
        row = await tx.one(_limited(_PICKED, selection, values), values)
        if row is not None:
            found.append(row)
    return sorted(found, key=lambda row: int(row["seq"]))


_ADD = f"""
    INSERT INTO replays ({", ".join(_STORED_COLUMNS)}) VALUES ({", ".join(f":{name}" for name in _STORED_COLUMNS)})
"""


async def add(tx: Tx, replay: Replay) -> None:
    values = asdict(replay)
    del values["waiting"]
    await tx.exec(_ADD, values)


async def count_running(tx: Tx, webhook_id: str) -> int:
    sql = "SELECT count(*) AS running FROM replays WHERE webhook_id = :webhook_id AND state = 'running'"
    row = await tx.one(sql, {"webhook_id": webhook_id})
    return int(row["running"]) if row else 0


async def one(tx: Tx, webhook_id: str, replay_id: str) -> Replay | None:
    sql = f"SELECT {_WITH_WAITING} FROM replays p WHERE p.id = :id AND p.webhook_id = :webhook_id"
    row = await tx.one(sql, {"id": replay_id, "webhook_id": webhook_id})
    return Replay(*row) if row else None


async def latest(tx: Tx, webhook_id: str, limit: int) -> list[Replay]:
    """The last replays of a webhook, newest first."""
    sql = f"SELECT {_WITH_WAITING} FROM replays p WHERE p.webhook_id = :webhook_id ORDER BY p.id DESC LIMIT :limit"
    return [Replay(*row) for row in await tx.all(sql, {"webhook_id": webhook_id, "limit": limit})]


async def is_any_running(db: Database) -> bool:
    return await db.one("SELECT 1 FROM replays WHERE state = 'running' LIMIT 1") is not None


_RUNNING = f"""
    SELECT {_COLUMNS}, {_COUNT_WAITING} AS waiting FROM replays p
    WHERE p.state = 'running' ORDER BY p.webhook_id, p.id
"""


async def running(tx: Tx) -> list[Replay]:
    """All running replays; those of one webhook are in the order in which they were started."""
    return [Replay(*row) for row in await tx.all(_RUNNING)]


async def has_backlog(tx: Tx, webhook_id: str) -> bool:
    """Whether deliveries are still to be skipped or queued again in the background."""
    sql = "SELECT 1 FROM webhooks WHERE id = :id AND (skip_through > 0 OR requeue_since IS NOT NULL)"
    return await tx.one(sql, {"id": webhook_id}) is not None


async def reserve_numbers(tx: Tx, webhook_id: str, count: int) -> Row | None:
    """Reserve numbers for deliveries, and return the last one and `url`; None if the webhook is not enabled."""
    return await tx.one(
        f"""
        UPDATE webhooks SET last_seq = last_seq + CAST(:count AS bigint)
        WHERE id = :id AND state = '{ENABLED}' RETURNING last_seq, url
        """,
        {"id": webhook_id, "count": count},
    )


async def advance(tx: Tx, replay: Replay, position: int, queued: int) -> bool:
    """Store progress; False if the replay was cancelled, or advanced by another process."""
    sql = """
        UPDATE replays SET position = :to, queued = queued + CAST(:queued AS bigint)
        WHERE id = :id AND state = 'running' AND position = :from
    """
    values: Params = {"id": replay.id, "to": position, "queued": queued, "from": replay.position}
    return await tx.exec(sql, values) == 1


async def finish(tx: Tx, replay_id: str, now: int) -> None:
    """End a replay of which nothing waits. Deliveries may have been deleted or replayed since they were counted."""
    sql = """
        UPDATE replays SET state = 'done', done = queued, total = queued, ended_at = :now
        WHERE id = :id AND state = 'running'
    """
    await tx.exec(sql, {"id": replay_id, "now": now})


_CANCELLED = f"state = 'cancelled', done = p.queued - {_COUNT_WAITING}, ended_at = :now WHERE p.state = 'running'"
_CANCEL_ONE = f"UPDATE replays AS p SET {_CANCELLED} AND p.id = :id"
_CANCEL_ALL = f"UPDATE replays AS p SET {_CANCELLED} AND p.webhook_id = :webhook_id"
_CANCEL_COPIES = f"""
    UPDATE deliveries SET state = '{CANCELLED}', due_at = NULL, ended_at = :now WHERE id IN (
        SELECT d.id FROM replays p JOIN deliveries d ON {_WAITING} WHERE p.id = :id
    )
"""


async def cancel(tx: Tx, replay_id: str, now: int) -> None:
    """Cancel a running replay, with the copies that wait for their first attempt."""
    if await tx.exec(_CANCEL_ONE, {"id": replay_id, "now": now}):
        await tx.exec(_CANCEL_COPIES, {"id": replay_id, "now": now})


async def cancel_all(tx: Tx, webhook_id: str, now: int) -> None:
    """Cancel the running replays of a webhook whose waiting deliveries are about to be skipped."""
    await tx.exec(_CANCEL_ALL, {"webhook_id": webhook_id, "now": now})


async def skipped_while_disabled(tx: Tx, webhook_id: str, until: int) -> Row:
    """Deliveries that were skipped because the webhook was disabled, and that no replay has sent: their number as
    `total`, and the time of the first as `since`.
    """
    row = await tx.one(
        f"""
        SELECT count(*) AS total, min(d.created_at) AS since FROM deliveries d {ABOUT}
        WHERE {_SELECTED} AND d.reason = '{DISABLED}'
        """,
        {"webhook_id": webhook_id, "since": 0, "states": SKIPPED, "until": until},
    )
    assert row is not None, "an aggregate"  # noqa: S101
    return row


async def drop_ended(tx: Tx, before: int) -> None:
    """Delete replays that were started before `before` and have ended."""
    await tx.exec("DELETE FROM replays WHERE id < :first AND state <> 'running'", {"first": first_id(before)})
