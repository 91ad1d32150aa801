"""A user's own comments, for the export of the account."""

from collections.abc import AsyncGenerator
from functools import partial

from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.store import OwnComment
from hubgate.server.storage.database import Database

# Each has up to 65,536 characters.
COMMENTS_AT_ONCE = 50


async def export_of(db: Database, user_id: str) -> AsyncGenerator[list[OwnComment], None]:
    """The comments in repos that the user may see, by discussion, without hidden ones, in parts."""
    after = ("", 0, 0)
    while True:
        read = partial(store.comments_by, user_id=user_id, after=after, limit=COMMENTS_AT_ONCE)
        part = await db.read_long(read)
        if not part:
            return
        yield part
        after = (part[-1].repo_id, part[-1].num, part[-1].position)
