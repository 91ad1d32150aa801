"""Operator-defined scopes that were granted to apps with a metadata document."""

from collections.abc import Sequence

from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.oauth.apps.privileges import check_extra_scope
from hubgate.server.oauth.cimd import store
from hubgate.server.oauth.cimd.model import GrantedScopes
from hubgate.server.oauth.cimd.rules import check_address
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.storage.database import Tx


async def grant(oauth: OAuth, url: str, scope: str) -> GrantedScopes:
    """Allow the app to request the scope; returns all scopes granted to it. The document is not fetched."""
    check_extra_scope(oauth, scope)
    for finding in check_address(url, http_loopback=oauth.documents.http_loopback):
        if not finding.passed:
            raise Unprocessable(f"{finding.rule}. {finding.fix}")
    now = oauth.clock()

    async def unit(tx: Tx) -> GrantedScopes:
        await store.add_scope(tx, url, scope, now)
        return await store.granted_scopes(tx, url)

    return await oauth.db.write(unit)


async def revoke(oauth: OAuth, url: str, scope: str) -> GrantedScopes:
    """Remove the scope from the app and from every consent; returns the remaining scopes."""

    async def unit(tx: Tx) -> GrantedScopes:
        if not await store.remove_scope(tx, url, scope):
            raise Conflict(f"The operator has not granted the scope {scope[:60]} to {url}.")
        await consent_store.remove_scope(tx, url, scope)
        return await store.granted_scopes(tx, url)

    return await oauth.db.write(unit)


async def list_all(oauth: OAuth) -> Sequence[GrantedScopes]:
    """The apps that have such scopes, ordered by the URL of the document."""
    return await oauth.db.read_long(store.all_granted_scopes)
