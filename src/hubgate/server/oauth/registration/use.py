"""The use of self-registered apps: recorded when a token is issued. Apps that nobody uses are removed."""

from hubgate.server.clock import DAY
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.registration import store

# An app is removed this long after its last token was issued, or after its registration.
UNUSED_LIFETIME = 30 * DAY
# Recorded at most this often, so that a refresh does not cost a write.
_RECORDED_EVERY = DAY


async def record_use(oauth: OAuth, app: App) -> None:
    now = oauth.clock()
    if app.self_registered and await store.used_before(oauth.db, app.client_id, now - _RECORDED_EVERY):
        await oauth.db.write(lambda tx: store.record_use(tx, app.client_id, now))
