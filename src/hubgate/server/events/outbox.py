"""Records events in the transaction of the change, so that both are committed or neither is."""

from collections.abc import Iterable, Mapping
from typing import Any

from hubgate.server.events import store
from hubgate.server.events.kinds import Kind
from hubgate.server.events.payload import Snapshot, body_of
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def record(
    tx: Tx,
    kind: Kind,
    repo: Snapshot,
    seq: int,
    extras: Mapping[str, Any],
    base_url: str,
    now: int,
    *,
    by_guest: bool = False,
) -> None:
    """Record an event. `seq` is taken from the repo's counter in the same transaction, so that there are no gaps.

    `by_guest`: the event was caused by a user without write access to the repo.
    """
    body = body_of(kind, repo, extras, base_url)
    await store.add(tx, new_id(now), kind, repo, seq, body, now, by_guest=by_guest)


async def record_all(
    tx: Tx, kind: Kind, changes: Iterable[tuple[Snapshot, int, Mapping[str, Any]]], base_url: str, now: int
) -> None:
    """Record one event for each repo of a change that affects many, each with its `seq` and extras."""
    events = [(new_id(now), repo, seq, body_of(kind, repo, extras, base_url)) for repo, seq, extras in changes]
    await store.add_all(tx, kind, events, now)
