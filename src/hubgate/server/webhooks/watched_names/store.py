"""SQL statements that end watches of repos that moved out of the watched namespace."""

from collections.abc import Iterable

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import RowStatement

# An empty target, as after a deletion: a new repo with the watched name does not inherit the watch.
_END = RowStatement(
    """
    UPDATE watches SET target_id = '' /*pg FROM batch */
    WHERE target_id = :repo_id AND NOT EXISTS (
        SELECT 1 FROM repos r JOIN names n ON n.owner_id = r.owner_id
        WHERE r.id = :repo_id AND substr(watches.key, 1, length(n.key) + 1) = n.key || '/'
    ) AND NOT EXISTS (
        SELECT 1 FROM repo_names p JOIN names n ON n.owner_id = p.owner_id
        WHERE p.repo_id = :repo_id AND n.key || '/' || p.key = watches.key
    )
    """,
    {"repo_id": "text"},
)


async def end_for_repos(tx: Tx, repo_ids: Iterable[str]) -> None:
    """End watches whose name is in another namespace and no longer redirects to the repo. Ids must be unique."""
    await tx.each(_END, [{"repo_id": repo_id} for repo_id in repo_ids])


async def end_for_repo(tx: Tx, repo_id: str) -> None:
    await end_for_repos(tx, [repo_id])
