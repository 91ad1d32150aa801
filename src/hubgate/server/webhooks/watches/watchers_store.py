"""The statement that finds the webhooks which receive an event."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.sqltext import Params, RowStatement, columns_of
from hubgate.server.webhooks.fanout.store import CLOCK_TOLERANCE, UnfannedEvent
from hubgate.server.webhooks.permissions.store import could_read, may_read

# Limited before the union: one repo may have a hundred thousand watchers.
_NEXT = """
    SELECT DISTINCT x.webhook_id FROM watches x
    WHERE x.target_id = :{} AND x.webhook_id > :cursor ORDER BY x.webhook_id LIMIT :limit
"""
_MAY_READ_NOW = may_read(":private", ":owner_id", ":repo_id")
_COULD_READ_THEN = could_read(":event_private", ":event_owner", ":repo_id")
_WATCHERS = RowStatement(
    f"""
    SELECT w.id, w.created_at, CAST(:place AS bigint) AS place,
        CASE WHEN (' ' || w.domains || ' ') LIKE :domain AND {_MAY_READ_NOW} AND {_COULD_READ_THEN}
        THEN 1 ELSE 0 END AS gets_delivery
    FROM (
        SELECT webhook_id FROM ({_NEXT.format("repo_id")}) a
        UNION
        SELECT webhook_id FROM ({_NEXT.format("event_owner")}) b
        UNION
        SELECT webhook_id FROM ({_NEXT.format("new_owner")}) n
        ORDER BY webhook_id LIMIT :limit
    ) c JOIN webhooks w ON w.id = c.webhook_id ORDER BY w.id
    """,
    columns_of(text="cursor repo_id event_owner new_owner domain owner_id", bigint="place event_private private"),
)


async def watchers(
    tx: Tx, events: Iterable[UnfannedEvent], new_owners: Mapping[str, str], limit: int, now: int
) -> dict[str, list[tuple[str, bool]]]:
    """The next webhooks that watch the repo or its owner, by event, as (id, gets a delivery), in the order of ids."""
    # Most events of a repo have the same watchers, which are read once.
    alike: dict[tuple[str | int, ...], list[UnfannedEvent]] = defaultdict(list)
    for event in events:
        # A move is also delivered to watchers of the new owner that could read the repo before.
        owners = event.owner_id, new_owners.get(event.id, event.owner_id), event.owner_now
        of_event = event.domain, event.private, event.private_now
        alike[(event.fan_cursor or "", event.repo_id, *owners, *of_event)].append(event)
    names = ("cursor", "repo_id", "event_owner", "new_owner", "owner_id", "domain", "event_private", "private")
    rows: list[Params] = [
        {**dict(zip(names, key, strict=True)), "domain": f"% {key[5]} %", "place": place}
        for place, key in enumerate(alike)
    ]
    found: list[list[Row]] = [[] for _ in alike]
    for row in await tx.each(_WATCHERS, rows, {"limit": limit}):
        found[row["place"]].append(row)
    return {
        event.id: [(row["id"], bool(row["gets_delivery"]) and _knew(row["created_at"], event, now)) for row in group]
        for group, same in zip(found, alike.values(), strict=True)
        for event in same
    }


def _knew(created_at: int, event: UnfannedEvent, now: int) -> bool:
    """Whether a webhook was created before an event, as far as clocks can be compared."""
    return created_at <= event.created_at + CLOCK_TOLERANCE or created_at > now + CLOCK_TOLERANCE
