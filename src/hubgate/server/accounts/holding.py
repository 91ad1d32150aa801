"""Changes of one account wait for one another, and an account that is gone by then is refused."""

from hubgate.server.accounts import store
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound
from hubgate.server.storage.database import Tx


async def hold(tx: Tx, user: User) -> str:
    """The user's name as it is now; nobody deletes or renames the account until this unit ends.

    Before anything of an organization is waited for: so does the deletion of a user, and neither blocks the other.
    """
    name = await store.hold_name(tx, user.id)
    if name is None:
        raise NotFound("This account is gone.")
    return name
