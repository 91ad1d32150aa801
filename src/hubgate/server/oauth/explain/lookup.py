"""Reads the stored rejected requests of an app."""

from collections.abc import Sequence

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.explain import store
from hubgate.server.oauth.explain.model import KEPT_FOR, MOST_OF_APP, Refusal


async def of_app(oauth: OAuth, app: App) -> Sequence[Refusal]:
    """The rejected requests of an app, newest first."""
    since = oauth.clock() - KEPT_FOR
    return await oauth.db.read_long(lambda tx: store.of_app(tx, app.client_id, since, MOST_OF_APP))


async def find(oauth: OAuth, request_id: str) -> Refusal | None:
    return await store.find(oauth.db, request_id, oauth.clock() - KEPT_FOR)
