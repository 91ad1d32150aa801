"""A session, without its cookie."""

import msgspec

from hubgate.server.clock import DAY, MINUTE

SESSION_LIFETIME = 30 * DAY
# Limited, because the sessions page of the settings and the user's data export read all sessions at once.
MAX_SESSIONS_PER_USER = 500
# Last use is updated at most this often, so that a page view does not cost a write.
USE_RECORDED_EVERY = 5 * MINUTE


class Session(msgspec.Struct, frozen=True):
    """A session. The fields are in the order of `store.COLUMNS`."""

    id: str
    user_id: str
    created_at: int
    last_used_at: int
    ip: str
    user_agent: str
