"""SQL statements for discussions and pull requests."""

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos.model import pull_request_of
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import insert_row

_COLUMNS = "id, repo_id, num, title, description, status, base, author_id, created_at, closed_by"

_ADD = insert_row(f"INSERT INTO discussions ({_COLUMNS})")


async def add(tx: Tx, discussion: Discussion) -> None:
    await tx.exec(_ADD, asdict(discussion))


async def find(tx: Tx | Database, repo_id: str, num: int) -> Discussion | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM discussions WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num}
    )
    return Discussion(*row) if row else None


async def accepts_commits(tx: Tx, repo_id: str, ref: str) -> bool:
    """Whether the ref is that of an open or draft pull request."""
    number = pull_request_of(ref)
    found = await find(tx, repo_id, number) if number else None
    return found is not None and found.accepts_commits


async def latest_open_pull_request(tx: Tx | Database, repo_id: str, author_id: str) -> Discussion | None:
    """The latest pull request of this author that accepts commits."""
    row = await tx.one(
        f"""
        SELECT {_COLUMNS} FROM discussions
        WHERE repo_id = :repo_id AND author_id = :author_id AND base IS NOT NULL AND status IN ('draft', 'open')
        ORDER BY num DESC LIMIT 1
        """,
        {"repo_id": repo_id, "author_id": author_id},
    )
    return Discussion(*row) if row else None


async def set_status(tx: Tx, repo_id: str, num: int, status: str, closed_by: str | None) -> None:
    await tx.exec(
        "UPDATE discussions SET status = :status, closed_by = :closed_by WHERE repo_id = :repo_id AND num = :num",
        {"repo_id": repo_id, "num": num, "status": status, "closed_by": closed_by},
    )


async def remove(tx: Tx, repo_id: str, num: int) -> None:
    await tx.exec("DELETE FROM discussions WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num})


class DiscussionFilter(Struct, frozen=True):
    """The filters of a list of discussions. None does not filter."""

    pull_requests: bool | None = None
    statuses: tuple[str, ...] | None = None
    # A user's name.
    author: str | None = None


async def page(
    tx: Tx, repo_id: str, discussion_filter: DiscussionFilter, start: int, limit: int
) -> tuple[list[tuple[Discussion, str | None]], int]:
    """A page of discussions with their authors' names, highest number first, and the total number."""
    params: dict[str, str | int] = {"repo_id": repo_id}
    conditions = ["d.repo_id = :repo_id"]
    if discussion_filter.pull_requests is not None:
        conditions.append("d.base IS NOT NULL" if discussion_filter.pull_requests else "d.base IS NULL")
    if discussion_filter.statuses is not None:
        params |= {f"status_{number}": status for number, status in enumerate(discussion_filter.statuses)}
        conditions.append(f"d.status IN ({', '.join(f':status_{n}' for n in range(len(discussion_filter.statuses)))})")
    if discussion_filter.author is not None:
        params["author"] = discussion_filter.author.lower()
        conditions.append("d.author_id = (SELECT n.owner_id FROM names n WHERE n.key = :author)")
    where = " AND ".join(conditions)
    total = await tx.one(f"SELECT count(*) AS n FROM discussions d WHERE {where}", params)
    rows = await tx.all(
        f"""
        SELECT {", ".join(f"d.{column}" for column in _COLUMNS.split(", "))}, u.name AS author
        FROM discussions d LEFT JOIN users u ON u.id = d.author_id
        WHERE {where} ORDER BY d.num DESC LIMIT :limit OFFSET :start
        """,
        {**params, "start": start, "limit": limit},
    )
    found = [(Discussion(*tuple(row)[:-1]), row["author"]) for row in rows]
    return found, int(total["n"]) if total else 0


async def count(tx: Tx | Database, repo_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM discussions WHERE repo_id = :repo_id", {"repo_id": repo_id})
    return int(row["n"]) if row else 0
