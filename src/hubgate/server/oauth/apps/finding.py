"""From a client id to the app: registered here, a configured CLI, or known by its metadata document."""

from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.model import LONGEST_LIFETIME, App
from hubgate.server.oauth.context import OAuth
from hubgate.server.scopes import BUILT_IN

LONGEST_CLIENT_ID = 2048


async def find_app(oauth: OAuth, client_id: str, *, caller: str) -> App | None:
    """`caller` is the address on whose behalf a document may have to be fetched."""
    if len(client_id) > LONGEST_CLIENT_ID or "\0" in client_id:
        return None
    if oauth.documents.is_address(client_id):
        return await oauth.documents.app(client_id, caller=caller)
    if app := await store.find(oauth.db, client_id):
        return app
    return _command_line(client_id) if client_id in oauth.cli_client_ids else None


def _command_line(client_id: str) -> App:
    """Tokens that last, with refresh: a CLI must not refresh at each start."""
    return App(
        client_id=client_id,
        name="Command line",
        scopes=tuple(scope.name for scope in BUILT_IN),
        token_lifetime=LONGEST_LIFETIME,
        refresh_tokens=True,
        first_party=True,
    )
