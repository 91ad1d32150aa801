"""Changes of one account wait for one another, and an account that is gone by then is refused."""

from hubgate.server.accounts import store
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound, Unauthorized
from hubgate.server.storage.database import Tx

_SIGNED_OUT = "The password of this account was changed just now. Sign in again."


async def hold(tx: Tx, user: User) -> str:
    """The user's name as it is now; nobody deletes or renames the account until this unit ends.

    Before anything of an organization is waited for: so does the deletion of a user, and neither blocks the other.
    """
    name = await store.hold_name(tx, user.id)
    if name is None:
        raise NotFound("This account is gone.")
    return name


async def hold_signed_in(tx: Tx, user_id: str | None, credentials_version: int | None) -> None:
    """Rejects what was judged before a new password ended the sign-in, and holds off the next one until this unit ends.

    A caller is found before the body of a request is received, and that may take a minute: without this, an intruder
    with a request under way would leave a token, an app or a webhook behind (attacks O67, O68). An account that is gone
    passes: the statement that needs it finds out. The hub itself has no version.
    """
    if user_id is None or credentials_version is None:
        return
    if await store.hold_credentials_version(tx, user_id) not in (None, credentials_version):
        raise Unauthorized(_SIGNED_OUT)


async def require_signed_in(tx: Tx, user_id: str | None, credentials_version: int | None) -> None:
    """The same for what a new password does not end, such as a change of an organization: nothing is held."""
    if user_id is None or credentials_version is None:
        return
    if await store.credentials_version(tx, user_id) not in (None, credentials_version):
        raise Unauthorized(_SIGNED_OUT)
