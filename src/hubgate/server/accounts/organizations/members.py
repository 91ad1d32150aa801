"""Who belongs to an organization, and as what. The last admin cannot go, whoever tries what at the same time."""

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.storage.database import Tx

LAST_ADMIN = "The last admin cannot leave. Make someone else admin first."


async def add(accounts: Accounts, organization: Organization, user: User, role: Role, actor: Actor) -> None:
    """By the operator; admins invite."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await _begin(tx, organization)
        if not await store.add_member(tx, organization.id, user.id, role, now):
            raise Conflict(f"{user.name} is a member already.")
        await store.drop_same_invitations(tx, organization.id, None, user.id)
        await record_added(tx, organization, user, role, actor, now)

    await accounts.db.write(unit)


async def record_added(tx: Tx, organization: Organization, user: User, role: Role, actor: Actor, now: int) -> None:
    data = {"user": user.name, "userId": user.id, "role": role.label}
    await record(tx, organization.id, Kind.ORG_ADD_USER, f"added {user.name} as {role.label}", actor, now, data)


async def change_role(accounts: Accounts, organization: Organization, user: User, role: Role, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await _begin(tx, organization)
        old = await store.role_of(tx, organization.id, user.id)
        if old is None:
            raise NotFound(f"{user.name} is not a member of {organization.name}.")
        if old is role:
            return
        if old is Role.ADMIN and not await store.has_other_admin(tx, organization.id, user.id):
            raise Conflict(LAST_ADMIN)
        await store.set_role(tx, organization.id, user.id, role)
        data = {"user": user.name, "userId": user.id, "from": old.label, "to": role.label}
        text = f"changed the role of {user.name} from {old.label} to {role.label}"
        await record(tx, organization.id, Kind.ORG_CHANGE_ROLE, text, actor, now, data)

    await accounts.db.write(unit)


async def remove(accounts: Accounts, organization: Organization, user: User, actor: Actor) -> None:
    """Also how a member leaves. Their live tokens lose the organization at the next request (attack O44)."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await _begin(tx, organization)
        role = await store.role_of(tx, organization.id, user.id)
        if role is None:
            raise NotFound(f"{user.name} is not a member of {organization.name}.")
        if role is Role.ADMIN and not await store.has_other_admin(tx, organization.id, user.id):
            raise Conflict(LAST_ADMIN)
        await store.remove_member(tx, organization.id, user.id)
        data = {"user": user.name, "userId": user.id, "role": role.label}
        text = f"left {organization.name}" if actor.user_id == user.id else f"removed {user.name}"
        await record(tx, organization.id, Kind.ORG_REMOVE_USER, text, actor, now, data)

    await accounts.db.write(unit)


async def _begin(tx: Tx, organization: Organization) -> None:
    if not await store.begin_change_of_members(tx, organization.id):
        raise NotFound("This organization is gone.")
