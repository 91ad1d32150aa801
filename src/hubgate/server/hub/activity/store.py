"""SQL statements that read recent events."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import RowStatement

# Larger bodies are not read: those of a push of thousands of refs.
MAX_BODY_BYTES = 16 * 1024
_EVENT = "e.id, e.repo_id, e.owner_id, e.private, e.scope, e.action, e.created_at"


class EventRow(Struct, frozen=True):
    id: str
    repo_id: str
    owner_id: str
    # Whether the repo was private after the change.
    private: int
    scope: str
    action: str
    created_at: int


_OF_OWNER = RowStatement(
    f"SELECT {_EVENT} FROM events e WHERE e.owner_id = :owner_id ORDER BY e.created_at DESC LIMIT :limit",
    {"owner_id": "text"},
)
_OF_REPO = RowStatement(
    f"SELECT {_EVENT} FROM events e WHERE e.repo_id = :repo_id ORDER BY e.repo_seq DESC LIMIT :limit",
    {"repo_id": "text"},
)
_BODY = RowStatement(
    f"SELECT e.id, e.body FROM events e WHERE e.id = :id AND length(e.body) <= {MAX_BODY_BYTES}", {"id": "text"}
)


async def latest_of_owners(tx: Tx, owners: Sequence[str], limit: int) -> list[EventRow]:
    """The latest events of each owner's repos."""
    rows = await tx.each(_OF_OWNER, [{"owner_id": each} for each in owners], {"limit": limit})
    return [EventRow(*row) for row in rows]


async def latest_of_repos(tx: Tx, repos: Sequence[str], limit: int) -> list[EventRow]:
    """The latest events of each repo."""
    rows = await tx.each(_OF_REPO, [{"repo_id": each} for each in repos], {"limit": limit})
    return [EventRow(*row) for row in rows]


async def bodies(tx: Tx, ids: Sequence[str]) -> dict[str, bytes]:
    """The payloads of these events, except large ones."""
    return {row["id"]: bytes(row["body"]) for row in await tx.each(_BODY, [{"id": each} for each in ids])}
