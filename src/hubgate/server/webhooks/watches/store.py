"""SQL statements for watches: the names that a webhook watches, and the accounts or repos they are bound to.

A watch on a repo ends when the repo moves to another owner, unless the watched name redirects to it (attack O69).
"""

from collections.abc import Iterable, Sequence

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import RowStatement, insert_row
from hubgate.server.webhooks.model import Watch
from hubgate.server.webhooks.permissions.store import may_read

_ADD = insert_row("INSERT INTO watches (webhook_id, type, key, name, target_id, position, made_at)")


async def set_all(tx: Tx, webhook_id: str, watches: Sequence[Watch], now: int) -> None:
    before = await tx.all(
        """
        SELECT x.type, x.key, COALESCE(x.made_at, w.created_at) AS made_at
        FROM watches x JOIN webhooks w ON w.id = x.webhook_id WHERE x.webhook_id = :id
        """,
        {"id": webhook_id},
    )
    created = {(row["type"], row["key"]): row["made_at"] for row in before}
    await tx.exec("DELETE FROM watches WHERE webhook_id = :id", {"id": webhook_id})
    await tx.exec_many(
        _ADD,
        [
            {
                "webhook_id": webhook_id,
                "type": watch.type,
                "key": watch.key,
                "name": watch.name,
                "target_id": watch.target_id,
                "position": position,
                "made_at": created.get((watch.type, watch.key), now),
            }
            for position, watch in enumerate(watches)
        ],
    )


# Watches with the current names of their targets. A deleted target is shown under the watched name, like a repo that
# the webhook may not report on: its exact spelling or new name would reveal that it exists (attack W30).
_WATCHES = f"""
    SELECT x.webhook_id, x.type, COALESCE(u.name, o.name, COALESCE(ru.name, ro.name) || '/' || r.name, x.name) AS name,
        x.target_id
    FROM watches x JOIN webhooks w ON w.id = x.webhook_id
    LEFT JOIN users u ON x.type = 'user' AND u.id = x.target_id
    LEFT JOIN organizations o ON x.type = 'org' AND o.id = x.target_id
    LEFT JOIN repos r ON x.type NOT IN ('user', 'org') AND r.id = x.target_id
        AND {may_read("r.private", "r.owner_id", "r.id")}
    LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations ro ON ro.id = r.owner_id
"""


_PUBLIC_AMONG = RowStatement("SELECT r.id FROM repos r WHERE r.id = :id AND r.private = 0", {"id": "text"})


async def of_webhook(tx: Tx, webhook_id: str) -> list[Watch]:
    rows = await tx.all(f"{_WATCHES} WHERE x.webhook_id = :id ORDER BY x.position", {"id": webhook_id})
    return [Watch(row["type"], row["name"], row["target_id"]) for row in rows]


async def drop_beyond_grant(tx: Tx, webhook_id: str) -> None:
    """Delete watches of repos that the webhook may not report on and of missing repos, whose names may be private."""
    await tx.exec(
        f"""
        DELETE FROM watches WHERE webhook_id = :id AND type NOT IN ('user', 'org') AND key NOT IN (
            SELECT x.key FROM watches x JOIN webhooks w ON w.id = x.webhook_id JOIN repos r ON r.id = x.target_id
            WHERE x.webhook_id = :id AND x.type = watches.type AND {may_read("r.private", "r.owner_id", "r.id")}
        )
        """,
        {"id": webhook_id},
    )


async def public_among(tx: Tx, repo_ids: Iterable[str]) -> set[str]:
    rows = await tx.each(_PUBLIC_AMONG, [{"id": repo_id} for repo_id in repo_ids])
    return {row["id"] for row in rows}


async def of_owner(tx: Tx, user_id: str | None, org_id: str | None) -> dict[str, list[Watch]]:
    rows = await tx.all(
        f"""
        {_WATCHES}
        WHERE w.user_id = :user_id OR w.org_id = :org_id ORDER BY x.webhook_id, x.position
        """,
        {"user_id": user_id, "org_id": org_id},
    )
    found: dict[str, list[Watch]] = {}
    for row in rows:
        found.setdefault(row["webhook_id"], []).append(Watch(row["type"], row["name"], row["target_id"]))
    return found


async def target_of(tx: Tx, watch: Watch) -> str | None:
    """The id of the account or repo with this name, also if the name redirects."""
    if watch.type in ("user", "org"):
        row: Row | None = await tx.one(
            "SELECT owner_id AS id FROM names WHERE key = :key AND kind = :kind",
            {"key": watch.key, "kind": watch.type},
        )
    else:
        owner, _, name = watch.key.partition("/")
        row = await tx.one(
            """
            SELECT p.repo_id AS id FROM names n
            JOIN repo_names p ON p.owner_id = n.owner_id AND p.type = :type AND p.key = :name
            WHERE n.key = :owner
            """,
            {"owner": owner, "name": name, "type": watch.type},
        )
    return row["id"] if row else None


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
    """End watches whose name is not in the namespace of the repo and does not redirect to it. Ids must be unique."""
    await tx.each(_END, [{"repo_id": repo_id} for repo_id in repo_ids])


async def end_for_repo(tx: Tx, repo_id: str) -> None:
    await end_for_repos(tx, [repo_id])
