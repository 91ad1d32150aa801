"""Row locks on organizations: changes are serialized, and rejected if the caller is no longer an admin.

`access` checked the caller at the start of the request; since then another admin may have demoted or removed them.
"""

from hubgate.server.accounts.account_locks import require_current_credentials
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.storage.database import Tx


async def lock_organization(tx: Tx, organization: Organization) -> Organization:
    """Lock an organization until the end of the transaction and return its current state."""
    return await _lock(tx, organization.id)


async def lock_organization_as_admin(tx: Tx, organization: Organization, actor: Actor) -> Organization:
    """Like `lock_organization`, but Forbidden unless the actor is an admin or the operator's command line, which has no
    user."""
    return await lock_organization_by_id_as_admin(tx, organization.id, actor)


async def lock_organization_by_id_as_admin(tx: Tx, org_id: str, actor: Actor) -> Organization:
    """Like `lock_organization_as_admin`, by id, for apps and webhooks of an organization."""
    latest = await _lock(tx, org_id)
    if actor.user_id is not None and await store.role_of(tx, latest.id, actor.user_id) is not Role.ADMIN:
        raise Forbidden(f"You are no longer an admin of {latest.name}.")
    await require_current_credentials(tx, actor.user_id, actor.credentials_version)
    return latest


async def _lock(tx: Tx, org_id: str) -> Organization:
    latest = await store.lock(tx, org_id)
    if latest is None:
        raise NotFound("This organization was deleted.")
    return latest
