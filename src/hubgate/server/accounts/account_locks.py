"""Row locks on accounts: changes to an account are serialized, and rejected if the account was deleted."""

from hubgate.server.accounts import store
from hubgate.server.accounts.model import User
from hubgate.server.errors import NotFound, Unauthorized
from hubgate.server.storage.database import Tx

_GONE = "This account was deleted."
_SIGNED_OUT = "The password of this account was changed. Sign in again."


async def lock_account(tx: Tx, user: User) -> str:
    """Lock an account against deletion and renames until the end of the transaction; returns its current name.

    Lock the user before any organization: the deletion of a user uses the same order, which avoids deadlocks.
    """
    return (await lock_account_by_id(tx, user.id)).name


async def lock_account_by_id(tx: Tx, user_id: str) -> User:
    """Like `lock_account`, by user id; returns the user. Lock the user before any repo, too."""
    locked = await store.lock_user(tx, user_id)
    if locked is None:
        raise NotFound(_GONE)
    return locked


async def lock_credentials(tx: Tx, user_id: str | None, credentials_version: int | None) -> None:
    """Reject a request authenticated before a password change, and block password changes until the transaction ends.

    The caller was authenticated before the transaction began: without this check, an intruder with a request in flight
    could leave a token, an app or a webhook behind (attacks O67, O68). A deleted account is not
    rejected here: the statement that needs the account fails. The system actor has no version.
    """
    if user_id is None or credentials_version is None:
        return
    locked = await store.lock_user(tx, user_id)
    if locked is not None and locked.credentials_version != credentials_version:
        raise Unauthorized(_SIGNED_OUT)


async def lock_account_and_credentials(tx: Tx, user_id: str, credentials_version: int | None) -> None:
    """Like `lock_credentials`, but the account must exist. Concurrent requests that add a token or a webhook to the
    account are serialized, so that they cannot exceed a limit."""
    locked = await lock_account_by_id(tx, user_id)
    if credentials_version not in (None, locked.credentials_version):
        raise Unauthorized(_SIGNED_OUT)


async def require_current_credentials(tx: Tx, user_id: str | None, credentials_version: int | None) -> None:
    """Like `lock_credentials`, but without a lock: for changes that a new password does not revoke, such as a change to
    an organization."""
    if user_id is None or credentials_version is None:
        return
    if await store.credentials_version(tx, user_id) not in (None, credentials_version):
        raise Unauthorized(_SIGNED_OUT)
