"""Statements of the processes that run Spaces. All that report about a Space require its lease."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.accounts.roles import Role
from hubgate.server.spaces.model import RUN, Space, Stage
from hubgate.server.spaces.runner import Use
from hubgate.server.spaces.store import SPACE
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, insert_row

_ADD_PROCESS = insert_row("INSERT INTO space_processes (id, heartbeat, machine)")


async def add_process(tx: Tx, process: str, machine: str) -> None:
    await tx.exec(_ADD_PROCESS, {"id": process, "heartbeat": 0, "machine": machine})


async def beat(tx: Tx, process: str) -> bool:
    """Change the heartbeat; False after a takeover. It is a counter, so that clocks do not matter."""
    return await tx.exec("UPDATE space_processes SET heartbeat = heartbeat + 1 WHERE id = :id", {"id": process}) == 1


async def processes(db: Database) -> dict[str, tuple[int, str]]:
    """Heartbeat and machine of each process."""
    rows = await db.few("SELECT id, heartbeat, machine FROM space_processes ORDER BY id")
    return {row["id"]: (row["heartbeat"], row["machine"]) for row in rows}


# Nothing runs, and the next process starts what ran.
_RELEASE = f"""
    UPDATE spaces SET process = NULL, running_version = NULL, running_sha = NULL, used_cpu = NULL, used_memory = NULL,
        used_processes = NULL, stage = CASE WHEN stage LIKE 'RUNNING%' THEN '{Stage.APP_STARTING.value}' ELSE stage END
    WHERE process = :process
"""


async def end_process(tx: Tx, process: str, heartbeat: int | None = None) -> bool:
    """End the leases of a process that has stopped or died; False if it was only late, or another has done so."""
    sql = "DELETE FROM space_processes WHERE id = :id AND heartbeat = COALESCE(CAST(:heartbeat AS bigint), heartbeat)"
    if await tx.exec(sql, {"id": process, "heartbeat": heartbeat}) == 0:
        return False
    await tx.exec(_RELEASE, {"process": process})
    return True


# A Space with something to do: a new version, an app that ran when its process ended, a request to one that sleeps.
_WAITING = f"""
    s.process IS NULL AND s.sdk <> '' AND s.wanted = '{RUN}' AND (
        s.version > s.tried_version
        OR s.stage IN ('{Stage.BUILDING.value}', '{Stage.APP_STARTING.value}')
        OR s.stage LIKE 'RUNNING%'
        OR (s.stage = '{Stage.SLEEPING.value}' AND EXISTS (
            SELECT 1 FROM space_requests q WHERE q.repo_id = s.repo_id AND q.sent_at IS NULL
        ))
    )
"""
# Each owner has a limit on Spaces that run.
_CLAIMABLE = f"""
    spaces s JOIN repos r ON r.id = s.repo_id
    WHERE {_WAITING} AND (
        SELECT count(*) FROM spaces o JOIN repos p ON p.id = o.repo_id
        WHERE o.process IS NOT NULL AND p.owner_id = r.owner_id
    ) < :per_owner
"""


async def has_claimable(db: Database, per_owner: int) -> bool:
    """Whether there is a Space to claim. An idle hub must not write every second only to find none."""
    return await db.one(f"SELECT 1 FROM {_CLAIMABLE} LIMIT 1", {"per_owner": per_owner}) is not None


_CLAIM = f"""
    UPDATE spaces SET process = :process WHERE repo_id = (
        SELECT s.repo_id FROM {_CLAIMABLE}
        ORDER BY s.stage_at, s.repo_id LIMIT 1 /*pg FOR UPDATE OF s SKIP LOCKED */
    ) AND process IS NULL RETURNING repo_id
"""


async def claim(tx: Tx, process: str, per_owner: int) -> str | None:
    """Lease one Space that has something to do, the one that waits longest. None also after a takeover: nobody would
    end the lease of a process without a row.
    """
    if await tx.one("SELECT 1 FROM space_processes WHERE id = :id /*pg FOR KEY SHARE */", {"id": process}) is None:
        return None
    row = await tx.one(_CLAIM, {"process": process, "per_owner": per_owner})
    return row["repo_id"] if row else None


async def has_unexplained(db: Database, before: int) -> bool:
    """Whether Spaces have been waiting for a process since before this time, and their owners do not know why."""
    sql = f"SELECT 1 FROM spaces s WHERE {_WAITING} AND s.message = '' AND s.stage_at < :before LIMIT 1"
    return await db.one(sql, {"before": before}) is not None


async def explain_waiting(tx: Tx, message: str, before: int) -> None:
    sql = f"""
    UPDATE spaces SET message = :message WHERE repo_id IN (
        SELECT s.repo_id FROM spaces s WHERE {_WAITING} AND s.message = '' AND s.stage_at < :before
    )
    """
    await tx.exec(sql, {"message": message, "before": before})


async def all_ids(tx: Tx) -> list[str]:
    return [row["repo_id"] for row in await tx.all("SELECT repo_id FROM spaces")]


async def leased(db: Database, process: str) -> list[Space]:
    rows = await db.few(f"SELECT {SPACE} FROM spaces s WHERE s.process = :process", {"process": process})
    return [Space(*row) for row in rows]


class Lease(Struct, frozen=True):
    repo_id: str
    process: str


_LEASED = "repo_id = :repo_id AND process = :process"
# Stages of a version that is no longer wanted are not stored.
_WANTED = f"{_LEASED} AND version = :version AND wanted = '{RUN}' AND sdk <> ''"


async def report(tx: Tx, lease: Lease, version: int, stage: Stage, message: str, now: int) -> bool:
    """Store the stage of a version; False if another version is wanted, or none."""
    sql = f"""
    UPDATE spaces SET stage = :stage, stage_at = CASE WHEN stage = :stage THEN stage_at ELSE :now END,
        message = :message, tried_version = :version WHERE {_WANTED}
    """
    values: Params = {"repo_id": lease.repo_id, "process": lease.process, "version": version, "now": now}
    return await tx.exec(sql, {**values, "stage": stage.value, "message": message}) == 1


async def set_running(tx: Tx, lease: Lease, version: int | None, sha: str | None) -> None:
    """Store which app serves requests; None without one."""
    sql = f"UPDATE spaces SET running_version = :version, running_sha = :sha WHERE {_LEASED}"
    await tx.exec(sql, {"repo_id": lease.repo_id, "process": lease.process, "version": version, "sha": sha})


async def set_failures(tx: Tx, lease: Lease, failures: int) -> None:
    sql = f"UPDATE spaces SET failures = :failures WHERE {_LEASED}"
    await tx.exec(sql, {"repo_id": lease.repo_id, "process": lease.process, "failures": failures})


async def set_use(tx: Tx, lease: Lease, milli_cpu: int, use: Use) -> None:
    sql = f"""
    UPDATE spaces SET used_cpu = :cpu, used_memory = :memory, used_processes = :processes WHERE {_LEASED}
    """
    values: Params = {"repo_id": lease.repo_id, "process": lease.process, "cpu": milli_cpu}
    await tx.exec(sql, {**values, "memory": use.memory, "processes": use.processes})


async def fall_asleep(tx: Tx, lease: Lease, version: int, last_request_at: int, now: int) -> bool:
    """Let a Space sleep, unless a request has come since then, or another version is wanted."""
    sql = f"""
    UPDATE spaces SET stage = '{Stage.SLEEPING.value}', stage_at = :now, message = '', running_version = NULL,
        running_sha = NULL
    WHERE {_WANTED} AND last_request_at <= :last_request_at
        AND NOT EXISTS (SELECT 1 FROM space_requests q WHERE q.repo_id = spaces.repo_id)
    """
    values: Params = {"repo_id": lease.repo_id, "process": lease.process, "version": version, "now": now}
    return await tx.exec(sql, {**values, "last_request_at": last_request_at}) == 1


async def release(tx: Tx, lease: Lease) -> None:
    await tx.exec(f"{_RELEASE} AND repo_id = :repo_id", {"repo_id": lease.repo_id, "process": lease.process})


async def owner_addresses(tx: Tx, repo_id: str) -> Sequence[str]:
    """The addresses of the user, or of the admins of the organization, that owns a Space."""
    rows = await tx.all(
        f"""
        SELECT u.email FROM repos r
        LEFT JOIN memberships m ON r.owner_kind = 'org' AND m.org_id = r.owner_id AND m.role = {int(Role.ADMIN)}
        JOIN users u ON u.id = CASE WHEN r.owner_kind = 'org' THEN m.user_id ELSE r.owner_id END
        WHERE r.id = :repo_id AND u.disabled_at IS NULL AND u.email_verified_at IS NOT NULL ORDER BY u.id
        """,
        {"repo_id": repo_id},
    )
    return [row["email"] for row in rows]
