"""SQL statements on events."""

from collections.abc import Iterable, Sequence

from hubgate.server.events.depth import depth_of_change
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import Snapshot
from hubgate.server.storage.database import Row, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.storage.sqltext import Params, insert_row

_ADD = insert_row(
    """
    INSERT INTO events (id, repo_id, repo_seq, repo_type, owner_id, private, scope, action, body, depth, created_at,
        guest)
    """
)


async def add(
    tx: Tx, event_id: str, kind: Kind, repo: Snapshot, seq: int, body: bytes, now: int, *, by_guest: bool
) -> None:
    await tx.exec(_ADD, _row(event_id, kind, repo, seq, body, now, guest=int(by_guest)))
    tx.signal(Signal.EVENTS)


async def add_all(tx: Tx, kind: Kind, events: Iterable[tuple[str, Snapshot, int, bytes]], now: int) -> None:
    """Insert events, each given by its id, its repo, its `seq` in that repo and its body."""
    await tx.exec_many(_ADD, [_row(event_id, kind, repo, seq, body, now) for event_id, repo, seq, body in events])
    tx.signal(Signal.EVENTS)


def _row(event_id: str, kind: Kind, repo: Snapshot, seq: int, body: bytes, now: int, guest: int = 0) -> Params:
    return {
        "id": event_id,
        "repo_id": repo.id,
        "repo_seq": seq,
        "repo_type": repo.type,
        "owner_id": repo.owner_id,
        "private": int(repo.private),
        "scope": kind.scope,
        "action": kind.action,
        "body": body,
        "depth": depth_of_change(),
        "created_at": now,
        "guest": guest,
    }


async def discussion_events_between(tx: Tx, repo_id: str, first_id: str, before_id: str) -> Sequence[Row]:
    """The events of a repo's discussions with ids in this range; columns id, body."""
    return await tx.all(
        """
        SELECT id, body FROM events
        WHERE id >= :first_id AND id < :before_id AND repo_id = :repo_id
            AND scope IN ('discussion', 'discussion.comment')
        """,
        {"repo_id": repo_id, "first_id": first_id, "before_id": before_id},
    )


async def replace_body(tx: Tx, event_id: str, body: bytes) -> None:
    await tx.exec("UPDATE events SET body = :body WHERE id = :id", {"id": event_id, "body": body})


# Of the bodies that one list contains, except that a list has at least one event.
MAX_LISTED_BYTES = 8 * 1024 * 1024


async def of_repo(tx: Tx, repo_id: str, after: int, limit: int) -> Sequence[Row]:
    """The events of a repo after `after`, in order; columns repo_seq, created_at, scope, body."""
    return await _up_to_size(tx, "repo_id = :repo_id", repo_id, after, limit)


async def of_repo_while_public(tx: Tx, repo_id: str, after: int, limit: int) -> Sequence[Row]:
    """Like `of_repo`, but only events from when the repo was public; the sequence then has gaps."""
    return await _up_to_size(tx, "repo_id = :repo_id AND private = 0", repo_id, after, limit)


async def _up_to_size(tx: Tx, condition: str, repo_id: str, after: int, limit: int) -> Sequence[Row]:
    """At most `limit` events, and not more than MAX_LISTED_BYTES."""
    params: Params = {"repo_id": repo_id, "after": after}
    sizes = await tx.all(
        f"""
        SELECT repo_seq, length(body) AS size FROM events WHERE {condition} AND repo_seq > :after
        ORDER BY repo_seq LIMIT :limit
        """,
        {**params, "limit": limit},
    )
    last, total = after, 0
    for row in sizes:
        total += row["size"]
        if total > MAX_LISTED_BYTES and last > after:
            break
        last = row["repo_seq"]
    return await tx.all(
        f"""
        SELECT repo_seq, created_at, scope, body FROM events
        WHERE {condition} AND repo_seq > :after AND repo_seq <= :last ORDER BY repo_seq
        """,
        {**params, "last": last},
    )
