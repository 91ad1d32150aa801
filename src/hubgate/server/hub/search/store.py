"""SQL statements that read what a search found, and find what has no document yet."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.access.visibility import VisibleCollections, VisibleRepos
from hubgate.server.hub.collections.model import Collection
from hubgate.server.hub.collections.store import COLLECTION, COLLECTION_OWNERS, visible_collections_sql
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.discussions.store import DISCUSSION
from hubgate.server.hub.listing.store import visible_repos_sql
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params

_DISCUSSION_COLUMNS = DISCUSSION.count(",") + 1
# Lists of ids are filled up to a multiple of this number, so that there are few different statements.
_IDS_STEP = 25


class FoundAccount(Struct, frozen=True):
    id: str
    # "user" or "org".
    kind: str
    name: str
    fullname: str


class FoundDiscussion(Struct, frozen=True):
    discussion: Discussion
    repo: Repo


async def repos_among(tx: Tx, ids: Sequence[str], visible: VisibleRepos) -> dict[str, Repo]:
    values: dict[str, str | int] = {}
    rows = await tx.all(
        f"""
        SELECT {REPO} FROM repos r {OWNERS}
        WHERE r.id IN ({_placeholders(ids, values)}) AND {visible_repos_sql(visible, values)}
        """,
        values,
    )
    return {row[0]: Repo(*row) for row in rows}


async def discussions_among(tx: Tx, ids: Sequence[str], visible: VisibleRepos) -> dict[str, FoundDiscussion]:
    values: dict[str, str | int] = {}
    rows = await tx.all(
        f"""
        SELECT {DISCUSSION}, {REPO} FROM discussions d JOIN repos r ON r.id = d.repo_id {OWNERS}
        WHERE d.id IN ({_placeholders(ids, values)}) AND {visible_repos_sql(visible, values)}
        """,
        values,
    )
    found = [
        FoundDiscussion(Discussion(*row[:_DISCUSSION_COLUMNS]), Repo(*row[_DISCUSSION_COLUMNS:]))
        for row in map(tuple, rows)
    ]
    return {each.discussion.id: each for each in found}


async def collections_among(tx: Tx, ids: Sequence[str], visible: VisibleCollections) -> dict[str, Collection]:
    values: dict[str, str | int] = {}
    rows = await tx.all(
        f"""
        SELECT {COLLECTION} FROM collections c {COLLECTION_OWNERS}
        WHERE c.id IN ({_placeholders(ids, values)}) AND {visible_collections_sql("c", visible, values)}
        """,
        values,
    )
    return {row[0]: Collection(*row) for row in rows}


async def accounts_among(tx: Tx, ids: Sequence[str]) -> dict[str, FoundAccount]:
    """Users who are not disabled, and organizations."""
    values: dict[str, str | int] = {}
    listed = _placeholders(ids, values)
    rows = await tx.all(
        f"""
        SELECT id, 'user' AS kind, name, fullname FROM users WHERE id IN ({listed}) AND disabled_at IS NULL
        UNION ALL SELECT id, 'org' AS kind, name, fullname FROM organizations WHERE id IN ({listed})
        """,
        values,
    )
    return {row[0]: FoundAccount(*row) for row in rows}


def _placeholders(ids: Sequence[str], values: dict[str, str | int]) -> str:
    missing = -len(ids) % _IDS_STEP
    params = {f"found{number}": each for number, each in enumerate([*ids, *[""] * missing])}
    values.update(params)
    return ", ".join(f":{name}" for name in params)


# Documents that are missing.

SEARCHED_TABLES = ("users", "organizations", "repos", "collections", "discussions")


async def without_document(tx: Tx, table: str, after: str, limit: int) -> list[str]:
    """Ids of rows of one of SEARCHED_TABLES that have no document, in order, starting after the id `after`."""
    rows = await tx.all(
        f"""
        SELECT t.id FROM {table} t LEFT JOIN search_documents d ON d.target = t.id
        WHERE t.id > :after AND d.id IS NULL ORDER BY t.id LIMIT :limit
        """,
        {"after": after, "limit": limit},
    )
    return [row["id"] for row in rows]


async def discussion_by_id(tx: Tx, discussion_id: str) -> Discussion | None:
    params: Params = {"id": discussion_id}
    row = await tx.one(f"SELECT {DISCUSSION} FROM discussions d WHERE d.id = :id", params)
    return Discussion(*row) if row else None
