"""Finds the registered servers among those that a request names, for a user."""

from collections.abc import Collection, Iterable

from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import invalid_target
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers import store
from hubgate.server.oauth.resource_servers.model import ResourceServer


async def find_servers(
    oauth: OAuth, uris: Iterable[str], user_id: str | None, approved: Collection[str] | None = None
) -> tuple[ResourceServer, ...]:
    """The registered servers with these URIs, in the same order. A local URI is that of the user's own server; without
    a user it is not found. invalid_target if two of them define the same scope.

    With `approved`, names of servers as in consents, a local server that is not among them counts as unregistered.
    """
    found = [await _find(oauth, uri, user_id) for uri in uris]
    servers = tuple(
        server
        for server in found
        if server is not None and (approved is None or not server.is_local or server.target in approved)
    )
    names = [name for server in servers for name in server.scope_names]
    if len(names) > len(set(names)):
        # One checkbox could not tell them apart.
        raise invalid_target("These servers have scopes of the same name. Request a token for one at a time.")
    return servers


async def _find(oauth: OAuth, uri: str, user_id: str | None) -> ResourceServer | None:
    if is_local(uri):
        return await store.find_of_user(oauth.db, uri, user_id) if user_id else None
    return await store.find_verified(oauth.db, uri)


def targets(uris: Iterable[str], servers: Iterable[ResourceServer]) -> tuple[str, ...]:
    """The names of the servers for codes, tokens and consents."""
    registered = {server.uri: server.target for server in servers}
    return tuple(registered.get(uri, uri) for uri in uris)
