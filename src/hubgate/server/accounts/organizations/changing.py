"""Changes of one organization wait for one another, and who lost the right to make them meanwhile is refused.

`access` judged the caller when the request came in; while it waits, another admin may demote or remove them.
"""

from hubgate.server.accounts.holding import require_signed_in
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.storage.database import Tx


async def begin(tx: Tx, organization: Organization) -> Organization:
    """The organization as it is now; nobody else changes it until this unit ends."""
    return await _begun(tx, organization.id)


async def begin_as_admin(tx: Tx, organization: Organization, actor: Actor) -> Organization:
    """The same for what only its admins do, and the operator's command line, which is no user."""
    return await begin_by_id_as_admin(tx, organization.id, actor)


async def begin_by_id_as_admin(tx: Tx, org_id: str, actor: Actor) -> Organization:
    """For what belongs to an organization and knows it by its id: apps, webhooks."""
    latest = await _begun(tx, org_id)
    if actor.user_id is not None and await store.role_of(tx, latest.id, actor.user_id) is not Role.ADMIN:
        raise Forbidden(f"You are no longer an admin of {latest.name}.")
    await require_signed_in(tx, actor.user_id, actor.credentials_version)
    return latest


async def _begun(tx: Tx, org_id: str) -> Organization:
    latest = await store.begin_change(tx, org_id)
    if latest is None:
        raise NotFound("This organization is gone.")
    return latest
