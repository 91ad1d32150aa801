"""Statements on Spaces: their state, and what their owners want."""

from collections.abc import Sequence

from msgspec.structs import fields

from hubgate.server.spaces.model import PAUSE, RUN, STOP, Space, Stage, Totals
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Params, Value, insert_row
from hubgate.server.webhooks.permissions.store import may_read

# In the order of model.Space.
SPACE = ", ".join(f"s.{field.name}" for field in fields(Space))
# What follows from a new version: the old app serves until the new one answers. A paused Space stays paused. One that
# slept must not fall asleep again as soon as it runs.
_NEXT_STAGE = f"""
    stage = CASE WHEN spaces.wanted <> '{RUN}' THEN '{Stage.PAUSED.value}' WHEN spaces.running_version IS NULL
        THEN '{Stage.BUILDING.value}' ELSE '{Stage.RUNNING_BUILDING.value}' END,
    stage_at = CASE WHEN spaces.wanted <> '{RUN}' THEN spaces.stage_at ELSE :now END,
    message = CASE WHEN spaces.wanted <> '{RUN}' THEN spaces.message ELSE '' END,
    last_request_at = CASE WHEN spaces.wanted <> '{RUN}' THEN spaces.last_request_at ELSE :now END,
    failures = 0
"""

_ADD = insert_row(
    "INSERT INTO spaces (repo_id, sdk, wanted, stage, stage_at, message, sleep_seconds, last_request_at)",
    f"ON CONFLICT (repo_id) DO UPDATE SET sdk = excluded.sdk, version = spaces.version + 1, {_NEXT_STAGE}",
)


async def put(tx: Tx, repo_id: str, sdk: str, sleep_seconds: int, now: int) -> None:
    """Add a Space whose card names an SDK that the hub runs, or give it a new version."""
    values: Params = {
        "repo_id": repo_id,
        "sdk": sdk,
        "wanted": RUN,
        "stage": Stage.BUILDING.value,
        "stage_at": now,
        "message": "",
        "sleep_seconds": sleep_seconds,
        "last_request_at": now,
        "now": now,
    }
    await tx.exec(_ADD, values)


async def forget_sdk(tx: Tx, repo_id: str, now: int) -> bool:
    """Stop running a Space whose card no longer names an SDK that the hub runs; False if there is nothing to stop."""
    sql = f"""
    UPDATE spaces SET sdk = '', version = version + 1, stage = '{Stage.STOPPED.value}', stage_at = :now,
        message = CASE WHEN wanted = '{RUN}' THEN '' ELSE message END
    WHERE repo_id = :repo_id AND sdk <> ''
    """
    return await tx.exec(sql, {"repo_id": repo_id, "now": now}) == 1


async def find(db: Database | Tx, repo_id: str) -> Space | None:
    row = await db.one(f"SELECT {SPACE} FROM spaces s WHERE s.repo_id = :repo_id", {"repo_id": repo_id})
    return Space(*row) if row else None


async def lock(tx: Tx, repo_id: str) -> Space | None:
    """Find a Space, and lock it until the end of the transaction."""
    sql = f"SELECT {SPACE} FROM spaces s WHERE s.repo_id = :repo_id /*pg FOR NO KEY UPDATE */"
    row = await tx.one(sql, {"repo_id": repo_id})
    return Space(*row) if row else None


async def renew(tx: Tx, repo_id: str, now: int) -> bool:
    """Give a Space a new version, because its settings have changed."""
    sql = f"UPDATE spaces SET version = version + 1, {_NEXT_STAGE} WHERE repo_id = :repo_id AND sdk <> ''"
    return await tx.exec(sql, {"repo_id": repo_id, "now": now}) == 1


async def restart(tx: Tx, repo_id: str, now: int, *, factory: bool) -> bool:
    """Run a Space, paused or not, with a new version; `factory`: without cached packages."""
    sql = f"UPDATE spaces SET wanted = '{RUN}' WHERE repo_id = :repo_id AND sdk <> ''"
    if await tx.exec(sql, {"repo_id": repo_id}) == 0:
        return False
    await renew(tx, repo_id, now)
    if factory:
        await tx.exec("UPDATE spaces SET factory_version = version WHERE repo_id = :repo_id", {"repo_id": repo_id})
    return True


_PAUSE = f"""
    UPDATE spaces SET wanted = :wanted, stage = '{Stage.PAUSED.value}', stage_at = :now, message = :message,
        failures = 0
    WHERE sdk <> ''
"""


async def pause(tx: Tx, repo_id: str, now: int) -> bool:
    values: Params = {"repo_id": repo_id, "wanted": PAUSE, "message": "", "now": now}
    return await tx.exec(f"{_PAUSE} AND repo_id = :repo_id", values) == 1


async def stop(tx: Tx, repo_id: str, message: str, now: int) -> bool:
    """Pause a Space as the operator: its owner cannot restart it."""
    values: Params = {"repo_id": repo_id, "wanted": STOP, "message": message, "now": now}
    return await tx.exec(f"{_PAUSE} AND repo_id = :repo_id", values) == 1


_OF_OWNER = "repo_id IN (SELECT r.id FROM repos r WHERE r.owner_id = :owner_id AND r.type = 'space')"


async def pause_of_owner(tx: Tx, owner_id: str, message: str, now: int) -> int:
    """Pause the Spaces of an owner that run; their number."""
    values: Params = {"owner_id": owner_id, "wanted": PAUSE, "message": message, "now": now}
    return await tx.exec(f"{_PAUSE} AND wanted = '{RUN}' AND {_OF_OWNER}", values)


async def renew_of_owner(tx: Tx, owner_id: str, now: int) -> int:
    """Give all Spaces of an owner a new version, unless they sleep or have failed; their number. Those are started
    with the new name anyway.
    """
    sql = f"""
    UPDATE spaces SET version = version + 1, {_NEXT_STAGE}
    WHERE sdk <> '' AND {_OF_OWNER}
        AND (running_version IS NOT NULL OR stage IN ('{Stage.BUILDING.value}', '{Stage.APP_STARTING.value}'))
    """
    return await tx.exec(sql, {"owner_id": owner_id, "now": now})


async def set_sleep_seconds(tx: Tx, repo_id: str, seconds: int | None) -> bool:
    sql = "UPDATE spaces SET sleep_seconds = :seconds WHERE repo_id = :repo_id"
    return await tx.exec(sql, {"repo_id": repo_id, "seconds": seconds}) == 1


_VISIBLE = f"""
    SELECT 1 FROM webhooks w JOIN repos r ON r.id = :repo_id
    WHERE w.id = :webhook_id AND {may_read("r.private", "r.owner_id", "r.id")}
"""


async def is_visible_to_webhook(db: Database, repo_id: str, webhook_id: str) -> bool:
    """Whether the owner of a webhook, and the app that created it, may see a Space."""
    return await db.one(_VISIBLE, {"repo_id": repo_id, "webhook_id": webhook_id}) is not None


async def touch(tx: Tx, repo_id: str, now: int) -> None:
    """Store the time of a request."""
    sql = "UPDATE spaces SET last_request_at = :now WHERE repo_id = :repo_id AND last_request_at < :now"
    await tx.exec(sql, {"repo_id": repo_id, "now": now})


_NOT_ADDED = """
    SELECT r.id, r.card FROM repos r
    WHERE r.type = 'space' AND r.id > :after AND NOT EXISTS (SELECT 1 FROM spaces s WHERE s.repo_id = r.id)
    ORDER BY r.id LIMIT :limit
"""


async def repos_without_row(tx: Tx, after: str, limit: int) -> Sequence[Row]:
    """Repos of Spaces that were pushed before the hub ran Spaces: rows with id and card."""
    return await tx.all(_NOT_ADDED, {"after": after, "limit": limit})


_OVERVIEW = f"""
    SELECT COALESCE(u.name, o.name) AS owner_name, r.name AS repo_name, {SPACE}
    FROM spaces s JOIN repos r ON r.id = s.repo_id
    LEFT JOIN users u ON r.owner_kind = 'user' AND u.id = r.owner_id
    LEFT JOIN organizations o ON r.owner_kind = 'org' AND o.id = r.owner_id
    WHERE s.sdk <> '' AND s.repo_id > :after AND (s.process IS NOT NULL OR :running = 0)
    ORDER BY s.repo_id LIMIT :limit
"""


async def overview(tx: Tx, after: str, limit: int, *, running: bool) -> list[tuple[str, Space]]:
    """Spaces after an id, with their names, by id. `running`: only those that a process runs or starts."""
    values: dict[str, Value] = {"after": after, "limit": limit, "running": int(running)}
    return [(f"{row[0]}/{row[1]}", Space(*tuple(row)[2:])) for row in await tx.all(_OVERVIEW, values)]


async def totals(tx: Tx) -> Totals:
    sql = """
    SELECT stage, count(*) AS n, sum(COALESCE(used_memory, 0)) AS memory FROM spaces WHERE sdk <> '' GROUP BY stage
    """
    rows = await tx.all(sql)
    waiting = await tx.one("SELECT count(*) AS n FROM space_requests WHERE answer IS NULL")
    stages = {row["stage"]: int(row["n"]) for row in rows}
    return Totals(stages, sum(int(row["memory"]) for row in rows), int(waiting["n"]) if waiting else 0)
