"""SQL statements that look for accounts and repos by name, restricted to what the caller may see."""

from collections.abc import Sequence

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import beginning
from hubgate.server.webhooks.model import OWNER_TYPES, Watch
from hubgate.server.webhooks.permissions.visible_store import SeesRepo, Values
from hubgate.server.webhooks.watches import store as watches

_REPO_NAME = "COALESCE(u.name, o.name) || '/' || r.name"
_OWNERS = "LEFT JOIN users u ON u.id = r.owner_id LEFT JOIN organizations o ON o.id = r.owner_id"


async def is_known(tx: Tx, watch: Watch, visible: VisibleRepos) -> bool:
    """Whether an account, or a repo that the caller may see, has the name. A hidden repo is like a missing one
    (attack W30).
    """
    target = await watches.target_of(tx, watch)
    if target is None:
        return False
    if watch.type in OWNER_TYPES:
        return await _account_exists(tx, target)
    values: Values = {"id": target}
    sees = SeesRepo(visible, values)("r.private", "r.owner_id")
    return await tx.one(f"SELECT 1 FROM repos r WHERE r.id = :id AND {sees}", values) is not None


async def _account_exists(tx: Tx, account_id: str) -> bool:
    # The names of deleted accounts are retained.
    sql = "SELECT 1 FROM users WHERE id = :id UNION ALL SELECT 1 FROM organizations WHERE id = :id"
    return await tx.one(sql, {"id": account_id}) is not None


async def accounts(tx: Tx, part: str, limit: int) -> list[Watch]:
    """Accounts whose current names begin with `part`."""
    rows = await tx.all(
        """
        SELECT n.kind, COALESCE(u.name, o.name) AS name FROM names n
        LEFT JOIN users u ON n.kind = 'user' AND u.id = n.owner_id AND u.disabled_at IS NULL
        LEFT JOIN organizations o ON n.kind = 'org' AND o.id = n.owner_id
        WHERE n.key LIKE :pattern ESCAPE '!' AND n.current = 1 AND COALESCE(u.id, o.id) IS NOT NULL
        ORDER BY n.key LIMIT :limit
        """,
        {"pattern": beginning(part.lower()), "limit": limit},
    )
    return [Watch(row["kind"], row["name"]) for row in rows]


async def repos_of(tx: Tx, owner: str, part: str, visible: VisibleRepos, limit: int) -> list[Watch]:
    """Repos of the account `owner` whose names begin with `part`."""
    values: Values = {"owner": owner.lower(), "pattern": beginning(part.lower()), "limit": limit}
    sees = SeesRepo(visible, values)("r.private", "r.owner_id")
    rows = await tx.all(
        f"""
        SELECT r.type, {_REPO_NAME} AS name FROM names n JOIN repos r ON r.owner_id = n.owner_id {_OWNERS}
        WHERE n.key = :owner AND lower(r.name) LIKE :pattern ESCAPE '!' AND {sees}
        ORDER BY r.updated_at DESC, r.id LIMIT :limit
        """,
        values,
    )
    return [Watch(row["type"], row["name"]) for row in rows]


async def own_repos(tx: Tx, owners: Sequence[str], part: str, limit: int) -> list[Watch]:
    """Repos of these owners whose names begin with `part`."""
    values: Values = {"pattern": beginning(part.lower()), "limit": limit}
    named = {f"owner{number}": owner for number, owner in enumerate(owners)}
    rows = await tx.all(
        f"""
        SELECT r.type, {_REPO_NAME} AS name FROM repos r {_OWNERS}
        WHERE r.owner_id IN ({", ".join(f":{name}" for name in named) or "NULL"})
            AND lower(r.name) LIKE :pattern ESCAPE '!'
        ORDER BY r.updated_at DESC, r.id LIMIT :limit
        """,
        {**values, **named},
    )
    return [Watch(row["type"], row["name"]) for row in rows]
