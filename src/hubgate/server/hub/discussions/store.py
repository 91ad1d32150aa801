"""Statements on discussions and pull requests."""

from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.storage.database import Database, Tx

_COLUMNS = "id, repo_id, num, title, description, status, base, author_id, created_at"


async def add(tx: Tx, discussion: Discussion) -> None:
    await tx.exec(
        f"""
        INSERT INTO discussions ({_COLUMNS})
        VALUES (:id, :repo_id, :num, :title, :description, :status, :base, :author_id, :created_at)
        """,
        {
            "id": discussion.id,
            "repo_id": discussion.repo_id,
            "num": discussion.num,
            "title": discussion.title,
            "description": discussion.description,
            "status": discussion.status,
            "base": discussion.base,
            "author_id": discussion.author_id,
            "created_at": discussion.created_at,
        },
    )


async def find(tx: Tx | Database, repo_id: str, num: int) -> Discussion | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM discussions WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num}
    )
    return Discussion(*row) if row else None


async def open_pull_request_by(tx: Tx | Database, repo_id: str, author_id: str) -> Discussion | None:
    """The latest of this author's that still takes commits."""
    row = await tx.one(
        f"""
        SELECT {_COLUMNS} FROM discussions
        WHERE repo_id = :repo_id AND author_id = :author_id AND base IS NOT NULL AND status IN ('draft', 'open')
        ORDER BY num DESC LIMIT 1
        """,
        {"repo_id": repo_id, "author_id": author_id},
    )
    return Discussion(*row) if row else None


async def count(tx: Tx | Database, repo_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM discussions WHERE repo_id = :repo_id", {"repo_id": repo_id})
    return int(row["n"]) if row else 0
