"""Records an audit entry: one insert, in the transaction of the change."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.audit import store
from hubgate.server.audit.chain import canonical_json, check_serializable
from hubgate.server.audit.model import Actor, Entry, EntryType
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def record(
    tx: Tx,
    org_id: str,
    entry_type: EntryType,
    message: str,
    actor: Actor,
    now: int,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Record an entry. `message` is a sentence without its subject, such as "added ada as admin"."""
    await store.add(tx, new_entry(org_id, entry_type, message, actor, now, data))


def new_entry(
    org_id: str, entry_type: EntryType, message: str, actor: Actor, now: int, data: Mapping[str, Any] | None = None
) -> Entry:
    """An entry for a change that is stored in one statement with it (`store.ADD_IN_BATCH`)."""
    return Entry(
        id=new_id(now),
        org_id=org_id,
        created_at=now,
        type=entry_type.value,
        message=message,
        author_id=actor.user_id,
        author_name=actor.name,
        ip=actor.ip,
        user_agent=actor.user_agent or None,
        data=_json(data),
        token=_json(actor.token),
        oauth=_json(actor.oauth),
        token_id=actor.token["id"] if actor.token else None,
    )


def _json(value: Mapping[str, Any] | None) -> str | None:
    """The canonical JSON of a value, as it is sealed."""
    if value is None:
        return None
    check_serializable(value)
    return canonical_json(value)
