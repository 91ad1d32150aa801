"""Statements that release watches from what no longer has, or redirects from, the name they watch."""

from collections.abc import Iterable

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Each

_RELEASE_REPO = Each(
    """
    UPDATE watches SET target_id = NULL, made_at = CAST(:at AS bigint) /*pg FROM batch */
    WHERE target_id = :repo_id AND NOT EXISTS (
        SELECT 1 FROM repo_names p JOIN names n ON n.owner_id = p.owner_id
        WHERE p.repo_id = :repo_id AND n.key || '/' || p.key = watches.key
    )
    """,
    {"repo_id": "text", "at": "bigint"},
)


async def release_repos(tx: Tx, left: Iterable[tuple[str, int]]) -> None:
    """Ids of repos that were moved, each once, and when: watchers by a name that does not lead there any more."""
    await tx.each(_RELEASE_REPO, [{"repo_id": repo_id, "at": at} for repo_id, at in left])


async def release_repo(tx: Tx, repo_id: str, now: int) -> None:
    await release_repos(tx, [(repo_id, now)])


async def release_account(tx: Tx, owner_id: str, now: int) -> None:
    """After a rename: a name that the account did not keep is no longer a way to watch it."""
    await tx.exec(
        """
        UPDATE watches SET target_id = NULL, made_at = :now
        WHERE target_id = :owner_id
            AND NOT EXISTS (SELECT 1 FROM names n WHERE n.owner_id = :owner_id AND n.key = watches.key)
        """,
        {"owner_id": owner_id, "now": now},
    )
