"""Finds the app for a client id: registered, a configured CLI, or described by a metadata document."""

from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.model import LONGEST_LIFETIME, App
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
        return await oauth.documents.app(client_id, caller=caller)
    if app := await store.find(oauth.db, client_id):
        return app
    return _cli_app(oauth, client_id) if client_id in oauth.cli_client_ids else None


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
