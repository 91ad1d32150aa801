"""Statements that read deliveries into memory: windows of a webhook's rows, and the check right before sending."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from hubgate.server.clock import SECOND
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement
from hubgate.server.webhooks.deliveries_store import ABOUT, ALIVE, MAY_GO, replay_run
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.health import Health
from hubgate.server.webhooks.model import ENABLED, LANE_BLOCKED_FOR, SIZES
from hubgate.server.webhooks.requests.request import SETTINGS, WebhookSettings

_ITEM = "d.id, d.webhook_id, d.repo_id, d.repo_seq, d.attempts, d.replay_of, d.is_test, d.due_at, d.tried_at"
# Each of these is the condition of a partial index.
UNTRIED = f"d.{ALIVE} AND d.attempts = 0 AND d.replay_of = ''"
REPLAYS = f"d.{ALIVE} AND d.attempts = 0 AND d.replay_of <> ''"
RETRIES = f"d.{ALIVE} AND d.attempts > 0"

_WEBHOOK = RowStatement(
    f"""
    SELECT id, ordered, resets, failures, closed_until, failing_since, warned_at, failed_at, COALESCE(
        (SELECT p.rate FROM replays p WHERE p.webhook_id = :webhook_id AND p.state = 'running' ORDER BY p.id LIMIT 1),
        (SELECT p.rate FROM replays p WHERE p.webhook_id = :webhook_id ORDER BY p.id DESC LIMIT 1)
    ) AS replay_rate
    FROM webhooks WHERE id = :webhook_id AND state = '{ENABLED}' AND skip_through = 0 AND requeue_since IS NULL
    """,
    {"webhook_id": "text"},
)
_FIRST_DUE = f"""
    SELECT {_ITEM} FROM deliveries d WHERE d.webhook_id = :webhook_id AND {{}} ORDER BY d.due_at, d.seq LIMIT {{}}
"""
_REPLAYS = RowStatement(_FIRST_DUE.format(REPLAYS, SIZES.replays), {"webhook_id": "text"})
_RETRIES = RowStatement(_FIRST_DUE.format(RETRIES, SIZES.retries), {"webhook_id": "text"})
_BLOCKERS = RowStatement(
    f"""
    SELECT d.webhook_id, d.repo_id, d.id, d.tried_at FROM deliveries d
    WHERE d.webhook_id = :webhook_id AND {RETRIES} AND d.replay_of = '' AND d.tried_at > :since
    """,
    {"webhook_id": "text"},
)
# One seek in the index for each repo, however many deliveries wait in it.
_REPOS = RowStatement(
    f"""
    SELECT CAST(:webhook_id AS text) AS webhook_id, repo_id FROM (
        WITH RECURSIVE lanes(repo_id, place) AS (
            SELECT min(d.repo_id), 1 FROM deliveries d
            WHERE d.webhook_id = :webhook_id AND {UNTRIED} AND d.repo_id > :after_repo
            UNION ALL
            SELECT (
                SELECT min(d.repo_id) FROM deliveries d
                WHERE d.webhook_id = :webhook_id AND {UNTRIED} AND d.repo_id > l.repo_id
            ), l.place + 1
            FROM lanes l WHERE l.repo_id IS NOT NULL AND l.place < {SIZES.lanes}
        )
        SELECT repo_id FROM lanes WHERE repo_id IS NOT NULL
    ) l
    """,
    {"webhook_id": "text", "after_repo": "text"},
)
_LANE = RowStatement(
    f"""
    SELECT {_ITEM} FROM deliveries d WHERE d.webhook_id = :webhook_id AND d.repo_id = :repo_id AND {UNTRIED}
    ORDER BY d.repo_seq LIMIT {SIZES.per_lane}
    """,
    {"webhook_id": "text", "repo_id": "text"},
)


async def windows(tx: Tx, after_repos: Mapping[str, str], now: int) -> dict[str, Window | None]:
    """Read webhooks, given with the repo after which lanes begin. None if disabled, or while a backlog is processed."""
    found: dict[str, Window | None] = dict.fromkeys(after_repos)
    rows: list[Params] = [{"webhook_id": webhook_id} for webhook_id in after_repos]
    for row in await tx.each(_WEBHOOK, rows):
        found[row["id"]] = Window(
            Health(*row[3:8]), row["resets"], bool(row["ordered"]), [], [], [], [], _interval(row["replay_rate"])
        )
    enabled = {webhook_id: window for webhook_id, window in found.items() if window is not None}
    rows = [{"webhook_id": webhook_id} for webhook_id in enabled]
    for row in await tx.each(_REPLAYS, rows):
        enabled[row["webhook_id"]].replays.append(_item(row))
    for row in await tx.each(_RETRIES, rows):
        enabled[row["webhook_id"]].retries.append(_item(row))
    repos = await tx.each(_REPOS, [{**row, "after_repo": after_repos[str(row["webhook_id"])]} for row in rows])
    for row in await tx.each(_LANE, [{"webhook_id": row["webhook_id"], "repo_id": row["repo_id"]} for row in repos]):
        enabled[row["webhook_id"]].untried.append(_item(row))
    rows = [{"webhook_id": webhook_id} for webhook_id, window in enabled.items() if window.ordered and window.retries]
    for row in await tx.each(_BLOCKERS, rows, {"since": now - LANE_BLOCKED_FOR}):
        enabled[row["webhook_id"]].blockers.append((row["repo_id"], row["id"], row["tried_at"]))
    return found


def _interval(rate: int | None) -> int:
    # Rounded up, so that the rate is never exceeded.
    return -(-SECOND // rate) if rate else 0


def _item(row: Row) -> Item:
    replay_of = row["replay_of"]
    return Item(
        id=row["id"],
        webhook_id=row["webhook_id"],
        repo_id=row["repo_id"],
        repo_seq=row["repo_seq"],
        attempts=row["attempts"],
        source=Source.RETRIES if row["attempts"] else Source.REPLAYS if replay_of else Source.LANES,
        is_replay=bool(replay_of),
        is_paced=not row["is_test"] and replay_of != "" and replay_run(replay_of) != row["id"],
        is_test=bool(row["is_test"]),
        due_at=row["due_at"] or 0,
        tried_at=row["tried_at"],
    )


class Checked(Struct, frozen=True):
    """A waiting delivery right before it is sent."""

    depth: int
    body: bytes | None
    # Whether the webhook may report on the repo (attacks W30, W31).
    may_go: int
    settings: WebhookSettings


_OF_WEBHOOK = ", ".join(f"w.{name}" for name in SETTINGS)
_CHECK = RowStatement(
    f"""
    SELECT d.id, d.depth, COALESCE(d.body, e.body), CASE WHEN {MAY_GO} THEN 1 ELSE 0 END, {_OF_WEBHOOK}
    FROM /*rows*/ deliveries d {ABOUT}
    WHERE d.id = :id AND d.{ALIVE} AND d.seq > w.skip_through AND w.requeue_since IS NULL
    """,
    {"id": "text"},
)


async def check(db: Database, delivery_ids: Iterable[str]) -> dict[str, Checked]:
    """Read deliveries, by id. Those that no longer wait are left out."""
    found = await db.each(_CHECK, [{"id": delivery_id} for delivery_id in delivery_ids])
    return {row[0]: Checked(row[1], row[2], row[3], WebhookSettings(*row[4:])) for row in found}
