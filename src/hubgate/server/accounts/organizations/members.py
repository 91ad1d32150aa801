"""Members of an organization and their roles. The last admin cannot be removed, even by concurrent requests."""

from hubgate.server.accounts.account_locks import lock_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.organizations.locks import lock_organization, lock_organization_as_admin
from hubgate.server.accounts.organizations.model import Member
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import Conflict, NotFound, Unprocessable
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

LAST_ADMIN = "An organization needs an admin. Make someone else an admin first."

# Limited, because every request and every view of a profile reads all memberships of a user.
MAX_ORGANIZATIONS_PER_USER = 500

CURSOR = (str,)


async def list_members(
    accounts: Accounts, organization: Organization, page: PageRequest, search: str = "", email: str = ""
) -> Page[Member]:
    """Members by name. `search` is part of a name or full name, `email` a whole verified address."""
    after, limit = page.last_shown(), page.fetch_limit

    async def unit(tx: Tx) -> list[Member]:
        return await store.members(tx, organization.id, search=search, email=email, after=after, limit=limit)

    return page_of(await accounts.db.read_long(unit), page, lambda member: (member.user.name.lower(),))


async def add(accounts: Accounts, organization: Organization, user: User, role: Role, actor: Actor) -> None:
    """Add a member on behalf of the operator; admins send invitations instead."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_for_joining(tx, organization, user)
        if not await join(tx, organization, user, role, now):
            raise Conflict(f"{user.name} is already a member.")
        await record_added(tx, organization, user, role, actor, now)

    await accounts.db.write(unit)


async def lock_for_joining(tx: Tx, organization: Organization, user: User) -> Organization:
    """Lock the user, then the organization: the order that avoids deadlocks (`lock_account`)."""
    await lock_account(tx, user)
    return await lock_organization(tx, organization)


async def join(tx: Tx, organization: Organization, user: User, role: Role, now: int) -> bool:
    """Add a member and delete the user's open invitations to the organization; False if already a member."""
    if not await store.add_member(tx, organization.id, user.id, role, now):
        return False
    if await exceeds_membership_limit(tx, user):
        raise Unprocessable(
            f"{user.name} is in {MAX_ORGANIZATIONS_PER_USER} organizations, the maximum, and must leave one first."
        )
    await _drop_invitations_of(tx, organization, user)
    return True


async def exceeds_membership_limit(tx: Tx, user: User) -> bool:
    """Whether the user has too many memberships. The transaction must have locked the user, so that the limit holds."""
    return await store.count_memberships(tx, user.id) > MAX_ORGANIZATIONS_PER_USER


async def record_added(tx: Tx, organization: Organization, user: User, role: Role, actor: Actor, now: int) -> None:
    data = {"user": user.name, "userId": user.id, "role": role.label}
    text = f"joined as {role.label}" if actor.user_id == user.id else f"added {user.name} as {role.label}"
    await record(tx, organization.id, EntryType.ORG_ADD_USER, text, actor, now, data)


async def change_role(accounts: Accounts, organization: Organization, user: User, role: Role, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_organization_as_admin(tx, organization, actor)
        old = await _require_changeable_role(tx, organization, user, role)
        if old is role:
            return
        await store.set_role(tx, organization.id, user.id, role)
        if old is Role.ADMIN:
            await store.drop_invitations_by(tx, organization.id, user.id)
        data = {"user": user.name, "userId": user.id, "from": old.label, "to": role.label}
        text = f"changed the role of {user.name} from {old.label} to {role.label}"
        await record(tx, organization.id, EntryType.ORG_CHANGE_ROLE, text, actor, now, data)

    await accounts.db.write(unit)


async def remove(accounts: Accounts, organization: Organization, user: User, actor: Actor) -> None:
    """Remove a member, or leave. The user's live tokens lose access to the organization at the next request
    (attack O44)."""
    now, leaves = accounts.clock(), actor.user_id == user.id

    async def unit(tx: Tx) -> None:
        await (lock_organization(tx, organization) if leaves else lock_organization_as_admin(tx, organization, actor))
        role = await _require_changeable_role(tx, organization, user, None)
        await _remove(tx, organization, user, role, actor, now)

    await accounts.db.write(unit)


async def leave_shared(tx: Tx, user: User, actor: Actor, reason: str, now: int) -> tuple[list[str], list[str]]:
    """Leave all organizations that have other members. The transaction must have locked every organization of the user.

    Returns the names of these organizations, and of those where the user stays because no other admin is left.
    """
    left, remaining = [], []
    for organization, role in await store.shared_with_others(tx, user.id):
        if role is Role.ADMIN and not await store.has_other_admin(tx, organization.id, user.id):
            remaining.append(organization.name)
        else:
            await _remove(tx, organization, user, role, actor, now, reason=reason)
            left.append(organization.name)
    return left, remaining


async def _remove(
    tx: Tx, organization: Organization, user: User, role: Role, actor: Actor, now: int, **more: str
) -> None:
    await store.remove_member(tx, organization.id, user.id)
    # A removed member could use an open invitation to get back in.
    await store.drop_invitations_by(tx, organization.id, user.id)
    await _drop_invitations_of(tx, organization, user)
    data = {"user": user.name, "userId": user.id, "role": role.label, **more}
    text = f"left {organization.name}" if actor.user_id == user.id else f"removed {user.name}"
    await record(tx, organization.id, EntryType.ORG_REMOVE_USER, text, actor, now, data)


async def _require_changeable_role(tx: Tx, organization: Organization, user: User, new: Role | None) -> Role:
    """The member's current role; Conflict if replacing it with `new` would leave the organization without an admin. If
    `new` is None, the member is removed."""
    role = await store.role_of(tx, organization.id, user.id)
    if role is None:
        raise NotFound(f"{user.name} is not a member of {organization.name}.")
    loses_admin = role is Role.ADMIN and new is not Role.ADMIN
    if loses_admin and not await store.has_other_admin(tx, organization.id, user.id):
        raise Conflict(LAST_ADMIN)
    return role


async def _drop_invitations_of(tx: Tx, organization: Organization, user: User) -> None:
    email = user.email if user.email_verified_at is not None else None
    await store.drop_invitations_of_invitee(tx, organization.id, email, user.id)
