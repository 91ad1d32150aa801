"""Statements that bind watches of names which nobody had to the first account or repo that gets them."""

from collections.abc import Iterable

from msgspec import Struct

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of


class NamedRepo(Struct, frozen=True):
    """The owner and the name of a repo in an event."""

    event_id: str
    event_at: int
    repo_id: str
    repo_type: str
    owner_id: str
    name: str

    @property
    def params(self) -> Params:
        owner_key, _, repo_alone = self.name.lower().partition("/")
        return {
            "event_id": self.event_id,
            "event_at": self.event_at,
            "owner_id": self.owner_id,
            "owner_key": owner_key,
            "repo_id": self.repo_id,
            "repo_key": self.name.lower(),
            "repo_alone": repo_alone,
            "repo_type": self.repo_type,
        }


# An account or repo that still exists has the watched name. Only if it was deleted are times compared, because clocks
# differ: a watch that was created after the event is for the next account or repo of that name.
_CREATED_BEFORE = """
    CAST(:event_at AS bigint) >= COALESCE(x.made_at, (SELECT w.created_at FROM webhooks w WHERE w.id = x.webhook_id))
"""
_BINDS_TO_OWNER = f"""
    x.target_id IS NULL AND x.type = COALESCE((SELECT k.kind FROM names k WHERE k.owner_id = :owner_id LIMIT 1), 'user')
    AND x.key IN (SELECT CAST(:owner_key AS text) UNION SELECT n.key FROM names n WHERE n.owner_id = :owner_id)
    AND (EXISTS (SELECT 1 FROM names t WHERE t.owner_id = :owner_id AND t.key = x.key) OR {_CREATED_BEFORE})
"""
_BINDS_TO_REPO = f"""
    x.target_id IS NULL AND x.type = :repo_type
    AND x.key IN (
        SELECT CAST(:repo_key AS text)
        UNION SELECT n.key || '/' || CAST(:repo_alone AS text) FROM names n WHERE n.owner_id = :owner_id
    )
    AND (EXISTS (SELECT 1 FROM repos t WHERE t.id = :repo_id) OR {_CREATED_BEFORE})
"""
_BINDS_WATCHES = RowStatement(
    f"""
    SELECT CAST(:event_id AS text) AS event_id FROM (
        SELECT 1 FROM watches x WHERE {_BINDS_TO_OWNER}
        UNION ALL
        SELECT 1 FROM watches x WHERE {_BINDS_TO_REPO}
        LIMIT 1
    ) y
    """,
    columns_of(text="event_id owner_id owner_key repo_id repo_key repo_alone repo_type", bigint="event_at"),
)


async def events_to_bind(tx: Tx, named: Iterable[NamedRepo]) -> set[str]:
    """The ids of events that name an account or repo to which `bind` would bind watches."""
    return {row["event_id"] for row in await tx.each(_BINDS_WATCHES, [repo.params for repo in named])}


_BIND = (
    f"UPDATE watches AS x SET target_id = :owner_id WHERE {_BINDS_TO_OWNER}",
    f"UPDATE watches AS x SET target_id = :repo_id WHERE {_BINDS_TO_REPO}",
)


async def bind(tx: Tx, repo: NamedRepo) -> None:
    """Bind watches to the owner and the repo. Former names of the owner count too."""
    for sql in _BIND:
        await tx.exec(sql, repo.params)
