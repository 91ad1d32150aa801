"""Creation of an organization, its profile, name, plan and billing, and its deletion."""

from hubgate.server.accounts import renames
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.field_checks import FieldChecks, check_field, check_fullname, check_website
from hubgate.server.accounts.limits import ORGANIZATIONS_BY_FOUNDER
from hubgate.server.accounts.model import PLANS, Organization, User
from hubgate.server.accounts.names import check_name, name_taken_message
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.organizations.locks import lock_organization, lock_organization_as_admin
from hubgate.server.accounts.organizations.members import MAX_ORGANIZATIONS_PER_USER, exceeds_membership_limit
from hubgate.server.accounts.roles import Role
from hubgate.server.accounts.search_documents import document_of, index_organization
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.ids import new_id
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx


async def create(
    accounts: Accounts, owner: User, name: str, fullname: str, actor: Actor, plan: str = PLANS[0]
) -> Organization:
    """Create an organization; `owner` is its first admin."""
    checks = FieldChecks()
    name = checks.check("name", check_name, name)
    fullname = checks.check("fullname", check_fullname, fullname)
    checks.raise_errors()
    now = accounts.clock()
    organization = Organization(new_id(now), name, fullname, "", _check_plan(plan), 0, now)

    async def unit(tx: Tx) -> None:
        await lock_account(tx, owner)
        if not await account_store.claim_name(tx, name, "org", organization.id, now):
            raise FieldErrors({"name": name_taken_message(name)})
        await store.add(tx, organization)
        await search_store.put(tx, document_of(organization))
        await store.add_member(tx, organization.id, owner.id, Role.ADMIN, now)
        if await exceeds_membership_limit(tx, owner):
            raise FieldErrors(
                {"name": f"You can be in at most {MAX_ORGANIZATIONS_PER_USER} organizations. Leave one first."}
            )
        if actor.user_id is not None:
            # In the transaction, so that a request that fails for another reason does not count.
            await accounts.limiter.require_in(tx, ORGANIZATIONS_BY_FOUNDER, actor.user_id)
        await record(tx, organization.id, EntryType.ORG_CREATE, f"created {name}", actor, now, {"name": name})

    await accounts.db.write(unit)
    return organization


async def set_profile(
    accounts: Accounts, organization: Organization, fullname: str, website: str, actor: Actor
) -> None:
    checks = FieldChecks()
    fullname = checks.check("fullname", check_fullname, fullname)
    website = checks.check("website", check_website, website)
    checks.raise_errors()
    now, changes = accounts.clock(), {"fullname": fullname, "website": website}

    async def unit(tx: Tx) -> None:
        latest = await lock_organization_as_admin(tx, organization, actor)
        if (latest.fullname, latest.website) == (fullname, website):
            return
        await store.set_profile(tx, organization.id, fullname, website)
        await index_organization(tx, organization.id)
        await record(tx, organization.id, EntryType.ORG_UPDATE_SETTINGS, "changed the profile", actor, now, changes)

    await accounts.db.write(unit)


async def rename(accounts: Accounts, organization: Organization, name: str, actor: Actor) -> None:
    """Rename an organization. The old name stays reserved permanently, unless it was used only briefly (attack O76)."""
    name = check_field("name", check_name, name)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        old = (await lock_organization_as_admin(tx, organization, actor)).name
        if name == old:
            return
        if not await renames.replace_name(tx, "org", organization.id, old, name, now):
            raise FieldErrors({"name": name_taken_message(name)})
        if actor.user_id is not None:
            # The operator's command line is not limited.
            await renames.enforce_rename_limit(tx, accounts, organization.id)
        await store.set_name(tx, organization.id, name)
        await index_organization(tx, organization.id)
        await accounts.rename_owned(tx, organization.id, old, name, now)
        data = {"from": old, "to": name}
        await record(tx, organization.id, EntryType.ORG_RENAME, f"renamed {old} to {name}", actor, now, data)

    await accounts.db.write_long(unit)


async def set_plan(accounts: Accounts, organization: Organization, plan: str, actor: Actor) -> None:
    """Set the plan, on behalf of the operator."""
    plan, now = _check_plan(plan), accounts.clock()

    async def unit(tx: Tx) -> None:
        old = (await lock_organization(tx, organization)).plan
        if old == plan:
            return
        await store.set_plan(tx, organization.id, plan, now)
        data = {"from": old, "to": plan}
        await record(tx, organization.id, EntryType.ORG_SET_PLAN, f"set the plan to {plan}", actor, now, data)

    await accounts.db.write(unit)


async def set_billing(accounts: Accounts, organization: Organization, can_pay: bool, actor: Actor) -> None:
    """Set whether a payment method is set up, on behalf of an admin."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        latest = await lock_organization_as_admin(tx, organization, actor)
        await _set_billing(tx, latest, can_pay, actor, now)

    await accounts.db.write(unit)


async def set_billing_by_operator(accounts: Accounts, organization: Organization, can_pay: bool, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await _set_billing(tx, await lock_organization(tx, organization), can_pay, actor, now)

    await accounts.db.write(unit)


async def _set_billing(tx: Tx, latest: Organization, can_pay: bool, actor: Actor, now: int) -> None:
    if bool(latest.can_pay) is can_pay:
        return
    await store.set_can_pay(tx, latest.id, int(can_pay))
    word = "on" if can_pay else "off"
    await record(tx, latest.id, EntryType.ORG_SET_BILLING, f"turned billing {word}", actor, now)


async def delete(accounts: Accounts, organization: Organization, actor: Actor) -> None:
    """Delete an organization permanently. Its audit log is retained, and its name stays reserved, unless it was used
    only briefly (attack O76)."""
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        name = (await lock_organization_as_admin(tx, organization, actor)).name
        await accounts.delete_owned(tx, organization.id, now)
        await renames.retire_or_delete_name(tx, name, now)
        await store.remove(tx, organization.id)
        await search_store.remove(tx, organization.id)
        await record(tx, organization.id, EntryType.ORG_DELETE, f"deleted {name}", actor, now)

    await accounts.db.write_long(unit)


def _check_plan(plan: str) -> str:
    if plan not in PLANS:
        raise Unprocessable(f"A plan is one of {', '.join(PLANS)}.")
    return plan
