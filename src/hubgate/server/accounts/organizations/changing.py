"""Changes of one organization wait for one another, and who lost the right to make them meanwhile is refused.

`access` judged the caller when the request came in; while it waits, another admin may demote or remove them.
"""

from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.storage.database import Tx


async def begin(tx: Tx, organization: Organization) -> Organization:
    """The organization as it is now; nobody else changes it until this unit ends."""
    latest = await store.begin_change(tx, organization.id)
    if latest is None:
        raise NotFound("This organization is gone.")
    return latest


async def begin_as_admin(tx: Tx, organization: Organization, actor: Actor) -> Organization:
    """The same for what only its admins do, and the operator's command line, which is no user."""
    latest = await begin(tx, organization)
    if actor.user_id is not None and await store.role_of(tx, latest.id, actor.user_id) is not Role.ADMIN:
        raise Forbidden(f"You are no longer an admin of {latest.name}.")
    return latest
