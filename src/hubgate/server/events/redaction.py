"""Removing the text of a hidden comment from events.

Events are otherwise immutable. A text that was hidden must not be sent or shown by deliveries that wait, are retried or
replayed, which all read the body of the event.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from hubgate.server.events import store
from hubgate.server.ids import AFTER_ALL, id_prefix
from hubgate.server.storage.database import Tx


async def remove_texts_of(tx: Tx, repo_id: str, comment_id: str, times: Iterable[int]) -> None:
    """Remove the texts of a comment from its events, as far as they are stored. `times`: when the comment was written
    and edited, in microseconds; the ids of its events begin with these.
    """
    for prefix in sorted({id_prefix(time) for time in times}):
        for row in await store.discussion_events_between(tx, repo_id, prefix, prefix + AFTER_ALL):
            payload = msgspec.json.decode(row["body"])
            if payload.get("comment", {}).get("id") == comment_id:
                remove_text(payload["comment"])
                await store.replace_body(tx, row["id"], msgspec.json.encode(payload))


def remove_text(comment: dict[str, Any]) -> None:
    """Remove the text from the comment of a payload."""
    comment.pop("content", None)
    comment["hidden"] = True
