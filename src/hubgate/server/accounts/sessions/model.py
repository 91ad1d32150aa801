"""A session as it is listed."""

import msgspec

from hubgate.server.clock import DAY, MINUTE

LASTS = 30 * DAY
# Use is written down this often, so that a page view does not cost a write.
NOTED_EVERY = 5 * MINUTE


class Session(msgspec.Struct, frozen=True):
    """The order of the fields is that of `store.COLUMNS`."""

    id: str
    user_id: str
    created_at: int
    last_used_at: int
    ip: str
    user_agent: str
