"""Writing an event, in the unit of work that makes the change: both are there or neither is."""

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
    """`seq` was taken from the repo's counter in this same unit, so that numbers have no gap. `by_guest`: a user who
    may not write to the repo caused it.
    """
    body = body_of(kind, repo, extras, base_url)
    await store.add(tx, new_id(now), kind, repo, seq, body, now, by_guest=by_guest)


async def record_all(
    tx: Tx, kind: Kind, changes: Iterable[tuple[Snapshot, int, Mapping[str, Any]]], base_url: str, now: int
) -> None:
    """The same for many repos that one change is about: each with its number and its extras."""
    told = [(new_id(now), repo, seq, body_of(kind, repo, extras, base_url)) for repo, seq, extras in changes]
    await store.add_all(tx, kind, told, now)
