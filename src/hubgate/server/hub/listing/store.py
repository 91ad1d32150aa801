"""SQL statements for lists of repos."""

from collections.abc import Sequence
from typing import Any

import msgspec

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params, RowStatement

# The columns to sort by. The hub does not count other values that clients sort by, such as downloads.
SORT_COLUMNS = {"createdAt": "r.created_at", "lastModified": "r.updated_at"}
# More owners would exceed the engines' limit on parameters per statement; no user is in so many organizations.
MAX_OWNERS = 501


class RepoFilter(msgspec.Struct, frozen=True):
    """The filters of a list. Empty values do not filter."""

    type: str = ""
    owner_id: str = ""
    # Repos of any of these owners.
    owners: Sequence[str] = ()
    # Texts that namespace/name must all contain.
    search_terms: Sequence[str] = ()
    tags: Sequence[str] = ()
    gated: bool | None = None
    sort: str = "lastModified"
    descending: bool = True


class Candidates(msgspec.Struct, frozen=True):
    """Repos that the text index found, which include all that a filter selects (`TextIndex.matching`)."""

    matching: str
    parameters: Params


async def page(
    tx: Tx,
    repo_filter: RepoFilter,
    visible: VisibleRepos,
    after: tuple[int, str] | None,
    limit: int,
    candidates: Candidates | None = None,
) -> list[Repo]:
    column, source = SORT_COLUMNS[repo_filter.sort], "repos r"
    values: dict[str, Any] = {"limit": limit}
    conditions = [visible_repos_sql(visible, values)]
    if candidates is not None:
        # The addition and the order of the join keep the engines from reading all repos in the order of the list.
        column, source = f"({column} + 0)", f"{candidates.matching} CROSS JOIN repos r"
        conditions.append("r.id = d.target")
        values.update(candidates.parameters)
    if repo_filter.type:
        conditions.append("r.type = :type")
        values["type"] = repo_filter.type
    if repo_filter.owner_id:
        conditions.append("r.owner_id = :owner_id")
        values["owner_id"] = repo_filter.owner_id
    if repo_filter.owners:
        # A prefix of its own, so that the parameters of the visibility condition are not overwritten.
        conditions.append(_owned_by_sql(repo_filter.owners, "selected", values))
    for number, text in enumerate(repo_filter.search_terms):
        conditions.append(f"lower(COALESCE(u.name, o.name) || '/' || r.name) LIKE :pattern{number} ESCAPE '\\'")
        values[f"pattern{number}"] = _like_pattern(text.lower())
    for number, tag in enumerate(repo_filter.tags):
        # The tag as a JSON string. LIKE would be case-sensitive on one engine only.
        conditions.append(f"replace(r.tags, :tag{number}, '') <> r.tags")
        values[f"tag{number}"] = msgspec.json.encode(tag).decode()
    if repo_filter.gated is not None:
        conditions.append("r.gated <> ''" if repo_filter.gated else "r.gated = ''")
    order = "DESC" if repo_filter.descending else "ASC"
    if after is not None:
        sign = "<" if repo_filter.descending else ">"
        conditions.append(f"({column}, r.id) {sign} (:after_value, :after_id)")
        values["after_value"], values["after_id"] = after
    rows = await tx.all(
        f"""
        SELECT {REPO} FROM {source} {OWNERS} WHERE {" AND ".join(conditions)}
        ORDER BY {column} {order}, r.id {order} LIMIT :limit
        """,
        values,
    )
    return [Repo(*row) for row in rows]


_NAME_OF_OWNER = RowStatement(
    """
    SELECT n.id, n.name FROM (
        SELECT u.id, u.name FROM users u WHERE u.id = :id UNION ALL
        SELECT o.id, o.name FROM organizations o WHERE o.id = :id
    ) n
    """,
    {"id": "text"},
)


async def names_of_owners(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """The names of users and organizations, by id."""
    return {row["id"]: row["name"] for row in await tx.each(_NAME_OF_OWNER, [{"id": each} for each in ids])}


def visible_repos_sql(visible: VisibleRepos, values: dict[str, str | int]) -> str:
    """The SQL condition that the caller may see the repo `r`. Adds its parameters to `values`."""
    conditions = ["r.private = 0"]
    if visible.owners:
        conditions.append(_owned_by_sql(visible.owners, "owner", values))
    if visible.owners_of_created and visible.client_id is not None:
        values["created_through"] = visible.client_id
        conditions.append(
            f"({_owned_by_sql(visible.owners_of_created, 'creator', values)} AND r.creator_client = :created_through)"
        )
    if visible.repos and visible.owners_of_repos:
        params = {f"chosen{number}": repo_id for number, repo_id in enumerate(visible.repos)}
        values.update(params)
        chosen = f"r.id IN ({', '.join(f':{each}' for each in params)})"
        conditions.append(f"({chosen} AND {_owned_by_sql(visible.owners_of_repos, 'reached', values)})")
    return f"({' OR '.join(conditions)})"


def _owned_by_sql(owners: Sequence[str], name: str, values: dict[str, str | int]) -> str:
    params = {f"{name}{number}": owner for number, owner in enumerate(owners[:MAX_OWNERS])}
    values.update(params)
    return f"r.owner_id IN ({', '.join(f':{each}' for each in params)})"


async def counts(tx: Tx, owner_id: str, visible: VisibleRepos) -> dict[str, int]:
    """The number of visible repos of an owner by type; types without repos are omitted."""
    values: dict[str, str | int] = {"owner_id": owner_id}
    rows = await tx.all(
        f"""
        SELECT r.type, count(*) AS n FROM repos r
        WHERE r.owner_id = :owner_id AND {visible_repos_sql(visible, values)} GROUP BY r.type
        """,
        values,
    )
    return {row["type"]: int(row["n"]) for row in rows}


async def used_storage(tx: Tx, owner_id: str, visible: VisibleRepos) -> int:
    """The bytes of large files in the repos of an owner that the caller may see. A total of all repos would reveal the
    size of private repos.
    """
    values: dict[str, str | int] = {"owner_id": owner_id}
    row = await tx.one(
        f"""
        SELECT COALESCE(SUM(l.size), 0) AS n FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE r.owner_id = :owner_id AND l.guest = 0 AND {visible_repos_sql(visible, values)}
        """,
        values,
    )
    return int(row["n"]) if row else 0


def _like_pattern(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
