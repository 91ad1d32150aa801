"""Deletion of an account by its user: shows the consequences, then requires the name and the password."""

from dataclasses import dataclass

from hubgate.server.accounts import own_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Person, User
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.password_confirmation import lock_password, require_password
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.audit.model import Actor
from hubgate.server.errors import FieldErrors
from hubgate.server.storage.database import Tx


@dataclass(frozen=True, slots=True)
class Consequences:
    tokens: int
    organizations: int
    # Names of organizations; while there are any, the account cannot be deleted.
    only_admin_of: list[str]


async def consequences(accounts: Accounts, person: Person) -> Consequences:
    user_id = person.user.id
    tokens = await token_store.count(accounts.db, user_id)
    orphans = await accounts.db.read_long(lambda tx: org_store.only_admin_of(tx, user_id))
    return Consequences(tokens, len(person.memberships), orphans)


async def delete_own(accounts: Accounts, user: User, typed: str, password: str, actor: Actor) -> None:
    """Delete the caller's account; Conflict while the user is the only admin of an organization."""
    if typed.strip() != user.name:
        raise FieldErrors({"name": f"Type {user.name}, as it is written here."})
    known_hash, now = await require_password(accounts, user, "password", password), accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_password(tx, user, "password", known_hash)
        await own_account.remove(tx, accounts, user, actor, now)

    await accounts.db.write_long(unit)
