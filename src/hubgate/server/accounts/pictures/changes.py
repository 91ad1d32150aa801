"""Setting and removing the pictures of users and organizations."""

from hubgate.server.accounts.account_locks import lock_account_by_id
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations.locks import lock_organization_as_admin
from hubgate.server.accounts.pictures import store
from hubgate.server.accounts.pictures.model import Picture, PictureOwner
from hubgate.server.accounts.pictures.reencoding import reencode
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Tx


async def draw(accounts: Accounts, user: User, data: bytes) -> Picture:
    """Draw anew what the user has uploaded; FieldErrors if it is not a picture that the hub accepts."""
    async with accounts.picture_slots.acquire(user.id):
        return await reencode(new_id(accounts.clock()), data)


async def set_of_user(accounts: Accounts, user: User, picture: Picture) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_account_by_id(tx, user.id)
        await store.put(tx, PictureOwner(user_id=user.id), picture, now)

    await accounts.db.write(unit)


async def remove_of_user(accounts: Accounts, user: User) -> None:
    await accounts.db.write(lambda tx: store.remove(tx, user.id))


async def set_of_organization(accounts: Accounts, organization: Organization, picture: Picture, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_organization_as_admin(tx, organization, actor)
        await store.put(tx, PictureOwner(org_id=organization.id), picture, now)
        await record(tx, organization.id, EntryType.ORG_UPDATE_SETTINGS, "changed the picture", actor, now)

    await accounts.db.write(unit)


async def remove_of_organization(accounts: Accounts, organization: Organization, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_organization_as_admin(tx, organization, actor)
        if await store.remove(tx, organization.id):
            await record(tx, organization.id, EntryType.ORG_UPDATE_SETTINGS, "removed the picture", actor, now)

    await accounts.db.write(unit)
