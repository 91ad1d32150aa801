"""Statements on the logs of Spaces. Each log has the newest lines, by numbers that only grow."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, insert_row

BUILD, RUN = "build", "run"
MAX_LINES = 2_000
LONGEST_LINE = 4_096


class Line(Struct, frozen=True):
    n: int
    at: int
    text: str


_ADD = insert_row("INSERT INTO space_logs (repo_id, kind, n, at, text)")
_COUNTERS = {BUILD: "build_lines", RUN: "run_lines"}


async def append(tx: Tx, repo_id: str, kind: str, lines: Sequence[tuple[int, str]]) -> None:
    """Add lines, each with its time, and delete the oldest beyond the limit. A deleted Space gets none."""
    lines = lines[-MAX_LINES:]
    counter = _COUNTERS[kind]
    sql = f"UPDATE spaces SET {counter} = {counter} + :count WHERE repo_id = :repo_id RETURNING {counter} AS last"
    row = await tx.one(sql, {"repo_id": repo_id, "count": len(lines)})
    if row is None:
        return
    first = int(row["last"]) - len(lines) + 1
    rows: list[Params] = [
        # PostgreSQL cannot store NUL.
        {"repo_id": repo_id, "kind": kind, "n": n, "at": at, "text": text[:LONGEST_LINE].replace("\0", "")}
        for n, (at, text) in enumerate(lines, first)
    ]
    await tx.exec_many(_ADD, rows)
    sql = "DELETE FROM space_logs WHERE repo_id = :repo_id AND kind = :kind AND n <= :oldest"
    await tx.exec(sql, {"repo_id": repo_id, "kind": kind, "oldest": int(row["last"]) - MAX_LINES})


async def clear(tx: Tx, repo_id: str, kind: str) -> None:
    """Begin a log again, for a new build or start."""
    sql = "DELETE FROM space_logs WHERE repo_id = :repo_id AND kind = :kind"
    await tx.exec(sql, {"repo_id": repo_id, "kind": kind})


async def read(tx: Tx, repo_id: str, kind: str, after: int, limit: int) -> list[Line]:
    """The lines after a number, the oldest first."""
    sql = """
    SELECT n, at, text FROM space_logs WHERE repo_id = :repo_id AND kind = :kind AND n > :after
    ORDER BY n LIMIT :limit
    """
    rows = await tx.all(sql, {"repo_id": repo_id, "kind": kind, "after": after, "limit": limit})
    return [Line(*row) for row in rows]


async def newest(tx: Tx, repo_id: str, kind: str, limit: int) -> list[Line]:
    """The newest lines, the oldest of them first."""
    sql = """
    SELECT n, at, text FROM space_logs WHERE repo_id = :repo_id AND kind = :kind ORDER BY n DESC LIMIT :limit
    """
    rows = await tx.all(sql, {"repo_id": repo_id, "kind": kind, "limit": limit})
    return [Line(*row) for row in rows][::-1]


_LATEST = RowStatement(
    "SELECT s.repo_id, s.build_lines, s.run_lines FROM spaces s WHERE s.repo_id = :repo_id", {"repo_id": "text"}
)


def followed_id(repo_id: str, kind: str) -> str:
    """The id by which live streams follow a log."""
    return f"{kind} {repo_id}"


async def latest(db: Database, followed: Collection[str]) -> dict[str, int]:
    """The numbers of the last lines of logs, by `followed_id`."""
    repo_ids = sorted({each.partition(" ")[2] for each in followed})
    found = {}
    for row in await db.each(_LATEST, [{"repo_id": repo_id} for repo_id in repo_ids]) if repo_ids else ():
        found[followed_id(row["repo_id"], BUILD)] = row["build_lines"]
        found[followed_id(row["repo_id"], RUN)] = row["run_lines"]
    return found
