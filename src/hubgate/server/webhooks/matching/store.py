"""SQL statements of dry runs, and of the reasons why a webhook did not get an event."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement
from hubgate.server.webhooks.deliveries_store import OWNER_NOW, PRIVATE_NOW
from hubgate.server.webhooks.model import MAX_DEPTH
from hubgate.server.webhooks.permissions.store import could_read, may_read
from hubgate.server.webhooks.permissions.visible_store import SeesRepo, Values


class Reader(Struct, frozen=True):
    """Columns of `webhooks` that decide what a webhook may read. The webhook need not be stored."""

    user_id: str | None
    org_id: str | None
    client_id: str | None = None
    grant_kind: str | None = None
    granted_by: str | None = None
    granted_scopes: str | None = None
    granted_under: str | None = None


class MatchingEvent(Struct, frozen=True):
    id: str
    scope: str
    action: str
    created_at: int
    repo_type: str
    # The current name of the repo; None if it was deleted.
    repo_name: str | None


_READER = ", ".join(f"CAST(:{name} AS text) AS {name}" for name in Reader.__struct_fields__)
_EVENT = "e.id, e.scope, e.action, e.created_at, e.repo_type, COALESCE(ru.name, ro.name) || '/' || r.name AS repo_name"
_REPO_OF_EVENT = """
    LEFT JOIN repos r ON r.id = e.repo_id
    LEFT JOIN users ru ON ru.id = r.owner_id LEFT JOIN organizations ro ON ro.id = r.owner_id
"""
_MAY_READ_NOW = may_read(PRIVATE_NOW, OWNER_NOW, "e.repo_id")
_COULD_READ_THEN = could_read("e.private", "e.owner_id", "e.repo_id")
_MATCHING = f"""
    SELECT {_EVENT} FROM (SELECT {_READER}) w CROSS JOIN events e {_REPO_OF_EVENT}
    WHERE {{target}} AND e.created_at >= :since AND e.depth < {MAX_DEPTH}
        AND CASE WHEN e.scope LIKE 'discussion%' THEN CAST(:discussion AS bigint) ELSE CAST(:repo AS bigint) END = 1
        AND {_MAY_READ_NOW} AND {_COULD_READ_THEN}
    ORDER BY {{order}} DESC LIMIT :limit
"""
_OF_OWNER = RowStatement(_MATCHING.format(target="e.owner_id = :target", order="e.created_at"), {"target": "text"})
_OF_REPO = RowStatement(_MATCHING.format(target="e.repo_id = :target", order="e.repo_seq"), {"target": "text"})
# A move is also sent to watchers of the new owner.
_MOVED_TO_OWNER = RowStatement(
    _MATCHING.format(target="e.scope = 'repo' AND e.action = 'move' AND r.owner_id = :target", order="e.created_at"),
    {"target": "text"},
)


async def matching_events(
    tx: Tx, reader: Reader, targets: Iterable[tuple[str, bool]], domains: Iterable[str], since: int, limit: int
) -> dict[str, MatchingEvent]:
    """Events that a webhook with these permissions and watched targets would get, at most `limit` for each target,
    by id. A target is an id, and whether it is an owner.
    """
    chosen = frozenset(domains)
    params: Params = {
        **asdict(reader),
        "since": since,
        "limit": limit,
        "repo": int("repo" in chosen),
        "discussion": int("discussion" in chosen),
    }
    owners = [{"target": target} for target, is_owner in targets if is_owner]
    repos = [{"target": target} for target, is_owner in targets if not is_owner]
    found: dict[str, MatchingEvent] = {}
    for statement, rows in ((_OF_OWNER, owners), (_MOVED_TO_OWNER, owners), (_OF_REPO, repos)):
        for row in await tx.each(statement, rows, params) if rows else ():
            event = MatchingEvent(*row)
            found[event.id] = event
    return found


_BODY = RowStatement("SELECT e.id, e.body FROM events e WHERE e.id = :id", {"id": "text"})


async def bodies(tx: Tx, event_ids: Iterable[str]) -> dict[str, bytes]:
    rows = [{"id": event_id} for event_id in event_ids]
    return {row["id"]: bytes(row["body"]) for row in (await tx.each(_BODY, rows) if rows else ())}


async def granted_under(tx: Tx, webhook_id: str) -> str | None:
    row = await tx.one("SELECT granted_under FROM webhooks WHERE id = :id", {"id": webhook_id})
    return row["granted_under"] if row else None


async def visible_event(tx: Tx, event_id: str, visible: VisibleRepos) -> Row | None:
    """id, scope, action, created_at, repo_type, repo_name, body of an event that the caller may see: its repo as it is
    now, and as it was at the event.
    """
    values: Values = {"id": event_id}
    return await tx.one(
        f"SELECT {_EVENT}, e.body FROM events e {_REPO_OF_EVENT} WHERE e.id = :id AND {_visible(visible, values)}",
        values,
    )


async def visible_events(
    tx: Tx, owners: Sequence[str], visible: VisibleRepos, since: int, limit: int
) -> list[MatchingEvent]:
    """The newest events of repos of these owners that the caller may see."""
    values: Values = {"since": since, "limit": limit}
    condition = _visible(visible, values)
    found: dict[str, MatchingEvent] = {}
    for owner in owners:
        rows = await tx.all(
            f"""
            SELECT {_EVENT} FROM events e {_REPO_OF_EVENT}
            WHERE e.owner_id = :owner AND e.created_at >= :since AND {condition}
            ORDER BY e.created_at DESC LIMIT :limit
            """,
            {**values, "owner": owner},
        )
        found.update({row["id"]: MatchingEvent(*row) for row in rows})
    return sorted(found.values(), key=lambda event: (event.created_at, event.id), reverse=True)[:limit]


def _visible(visible: VisibleRepos, values: Values) -> str:
    sees = SeesRepo(visible, values)
    return f"{sees(PRIVATE_NOW, OWNER_NOW)} AND {sees('e.private', 'e.owner_id')}"


async def conditions(tx: Tx, webhook_id: str, event_id: str, moved_to: str | None) -> Row | None:
    """The conditions of fan-out for one webhook and one event: watched_since (null if the webhook watches neither the
    repo nor its owner), gets_domain, may_read, fanned_at, passed (1 if fan-out has passed this webhook).
    """
    return await tx.one(
        f"""
        SELECT (
                SELECT min(COALESCE(x.made_at, w.created_at)) FROM watches x
                WHERE x.webhook_id = w.id AND x.target_id IN (e.repo_id, e.owner_id, CAST(:moved_to AS text))
            ) AS watched_since,
            CASE WHEN (' ' || w.domains || ' ') LIKE
                CASE WHEN e.scope LIKE 'discussion%' THEN '% discussion %' ELSE '% repo %' END
                THEN 1 ELSE 0 END AS gets_domain,
            CASE WHEN {_MAY_READ_NOW} AND {_COULD_READ_THEN} THEN 1 ELSE 0 END AS may_read,
            CASE WHEN e.fanned_at IS NOT NULL OR COALESCE(e.fan_cursor, '') >= w.id THEN 1 ELSE 0 END AS passed
        FROM webhooks w CROSS JOIN events e LEFT JOIN repos r ON r.id = e.repo_id
        WHERE w.id = :webhook_id AND e.id = :event_id
        """,
        {"webhook_id": webhook_id, "event_id": event_id, "moved_to": moved_to},
    )
