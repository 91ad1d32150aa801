"""Finds the app for a client id: registered, a configured CLI, or described by a metadata document."""

from msgspec.structs import replace

from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.model import LONGEST_LIFETIME, App
from hubgate.server.oauth.cimd import store as document_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.scopes import BUILT_IN_SCOPES

LONGEST_CLIENT_ID = 2048
# Names of the CLIs configured by default; any other is shown by its client id.
CLI_NAMES = {"hubgate-cli": "hubgate CLI", "26be6b09-91c5-47da-9861-d2d2bb7a7e36": "hf CLI"}


async def find_app(oauth: OAuth, client_id: str, *, caller: str) -> App | None:
    """Find an app. A document fetch counts towards the rate limit of `caller`, an IP address."""
    if len(client_id) > LONGEST_CLIENT_ID or "\0" in client_id:
        return None
    if oauth.documents.is_document_url(client_id):
        return await _document_app(oauth, client_id, caller)
    if app := await store.find(oauth.db, client_id):
        return app
    return _cli_app(oauth, client_id) if client_id in oauth.cli_client_ids else None


async def _document_app(oauth: OAuth, url: str, caller: str) -> App:
    app = await oauth.documents.app(url, caller=caller)
    if not oauth.extra_scopes:
        return app
    granted = await oauth.db.read(lambda tx: document_store.granted_scopes(tx, url))
    return replace(app, extra_scopes=granted.scopes)


def _cli_app(oauth: OAuth, client_id: str) -> App:
    """A configured CLI, with the longest token lifetime so that it need not refresh at each start."""
    return App(
        client_id=client_id,
        name=CLI_NAMES.get(client_id, client_id),
        scopes=tuple(scope.name for scope in BUILT_IN_SCOPES if scope.name not in oauth.unavailable_scopes),
        token_lifetime=LONGEST_LIFETIME,
        refresh_tokens=True,
        first_party=True,
    )
