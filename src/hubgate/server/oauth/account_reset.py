"""Revokes app sign-ins after a password reset; also deletes consents and apps if the account was never verified."""

from collections.abc import Sequence

from msgspec.structs import replace

from hubgate.server.accounts.model import RevokedCounts
from hubgate.server.audit.model import Actor
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.device import store as device_store
from hubgate.server.oauth.resource_servers import store as resource_store
from hubgate.server.oauth.resource_servers.management import delete_locked as delete_resource_server
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.storage.database import Tx


async def revoke_sign_ins(tx: Tx, user_id: str, now: int) -> RevokedCounts:
    """Delete the user's codes and tokens of every app. Consents remain, so apps get new tokens at the next sign-in.

    The caller's transaction has locked the user. Consents are locked first, as in every transaction: a concurrent
    refresh has either committed already, and its tokens are deleted here, or finds its refresh token deleted.
    """
    await consent_store.lock_user_consents(tx, user_id)
    return await _delete_tokens(tx, user_id, now)


async def revoke_everything(
    tx: Tx, user_id: str, owners: Sequence[str], actor: Actor, reason: str, now: int
) -> RevokedCounts:
    """Delete the user's codes, tokens and consents, the resource servers of `owners`, and their apps with all
    their consents and tokens.
    """
    # Apps are locked before consents, in the same order as when an app is deleted.
    owned_apps = [app for owner in owners for app in await app_store.lock_owner_apps(tx, owner)]
    servers = [server for owner in owners for server in await resource_store.of_owner(tx, owner, owner)]
    for server in servers:
        await delete_resource_server(tx, server, actor, now, reason)
    connected = await consent_store.lock_user_consents(tx, user_id)
    revoked = await _delete_tokens(tx, user_id, now)
    await consent_store.delete_user_consents(tx, user_id)
    for app in owned_apps:
        await management.delete_locked(tx, app, actor, now, reason)
    return replace(revoked, connected_apps=connected, apps=len(owned_apps), resource_servers=len(servers))


async def _delete_tokens(tx: Tx, user_id: str, now: int) -> RevokedCounts:
    """Delete and count tokens. The caller's transaction has locked the consents."""
    tokens, families = await token_store.count_user_tokens(tx, user_id, now)
    await device_store.delete_decided_by(tx, user_id)
    await token_store.revoke_user_tokens(tx, user_id)
    return RevokedCounts(app_tokens=tokens, refresh_tokens=families)
