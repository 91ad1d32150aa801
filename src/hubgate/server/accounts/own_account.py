"""Changes to a user's account: profile, name, billing flag, deletion."""

from msgspec import Struct

from hubgate.server.accounts import renames, store
from hubgate.server.accounts.account_locks import lock_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.field_checks import FieldChecks, check_field, check_fullname, check_website
from hubgate.server.accounts.model import Person, User
from hubgate.server.accounts.names import check_name, name_taken_message
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.passwords import lock_password, require_password
from hubgate.server.accounts.search_documents import index_user
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import Conflict, FieldErrors
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx


async def set_profile(accounts: Accounts, user: User, fullname: str, website: str) -> None:
    checks = FieldChecks()
    fullname = checks.check("fullname", check_fullname, fullname)
    website = checks.check("website", check_website, website)
    checks.raise_errors()

    async def unit(tx: Tx) -> None:
        await store.set_profile(tx, user.id, fullname, website)
        await index_user(tx, user.id)

    await accounts.db.write(unit)


async def set_billing(accounts: Accounts, user: User, can_pay: bool) -> None:
    """Set whether a payment method is set up. The hub itself takes no payments."""
    await accounts.db.write(lambda tx: store.set_user_can_pay(tx, user.id, int(can_pay)))


async def rename(accounts: Accounts, user: User, name: str) -> None:
    """Rename a user. The old name stays reserved for the account permanently, unless it was used only briefly (attack
    O76)."""
    name, now = check_field("username", check_name, name), accounts.clock()

    async def unit(tx: Tx) -> None:
        old = await lock_account(tx, user)
        if name == old:
            return
        if not await renames.replace_name(tx, "user", user.id, old, name, now):
            raise FieldErrors({"username": name_taken_message(name)})
        await renames.enforce_rename_limit(tx, accounts, user.id)
        await store.set_name(tx, user.id, name)
        await index_user(tx, user.id)
        await accounts.rename_owned(tx, user.id, old, name, now)

    await accounts.db.write_long(unit)


async def delete(accounts: Accounts, user: User, actor: Actor) -> None:
    """Delete a user permanently; the name stays reserved, unless it was used only briefly (attack O76). Conflict while
    the user is the only admin of an organization.
    """
    now = accounts.clock()
    await accounts.db.write_long(lambda tx: delete_in_transaction(tx, accounts, user, actor, now))


async def delete_in_transaction(tx: Tx, accounts: Accounts, user: User, actor: Actor, now: int) -> None:
    """Delete a user inside a transaction."""
    name = await lock_account(tx, user)
    memberships = await org_store.lock_organizations_of(tx, user.id)
    orphans = await org_store.only_admin_of(tx, user.id)
    if orphans:
        who = "You are" if actor.user_id == user.id else f"{name} is"
        names = ", ".join(orphans)
        raise Conflict(
            f"{who} the only admin of {names}. First make someone else an admin there, or delete the organization."
        )
    for org_id, role in memberships:
        data = {"user": name, "userId": user.id, "role": role.label}
        text = f"removed {name}, whose account was deleted"
        await record(tx, org_id, EntryType.ORG_REMOVE_USER, text, actor, now, data)
        await org_store.drop_invitations_by(tx, org_id, user.id)
    await accounts.delete_owned(tx, user.id, now)
    await renames.retire_or_delete_name(tx, name, now)
    await store.remove_user(tx, user.id)
    await search_store.remove(tx, user.id)


class DeletionConsequences(Struct, frozen=True):
    tokens: int
    organizations: int
    # Names of organizations; while there are any, the account cannot be deleted.
    only_admin_of: list[str]


async def deletion_consequences(accounts: Accounts, person: Person) -> DeletionConsequences:
    user_id = person.user.id
    tokens = await token_store.count(accounts.db, user_id)
    orphans = await accounts.db.read_long(lambda tx: org_store.only_admin_of(tx, user_id))
    return DeletionConsequences(tokens, len(person.memberships), orphans)


async def delete_own(accounts: Accounts, user: User, typed_name: str, password: str, actor: Actor) -> None:
    """Delete the caller's account; Conflict while the user is the only admin of an organization."""
    if typed_name.strip() != user.name:
        raise FieldErrors({"name": f"Type {user.name}, exactly as shown here."})
    known_hash, now = await require_password(accounts, user, "password", password), accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_password(tx, user, "password", known_hash)
        await delete_in_transaction(tx, accounts, user, actor, now)

    await accounts.db.write_long(unit)
