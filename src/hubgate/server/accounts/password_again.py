"""The password once more, before what a borrowed browser must not do."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_OF_ACCOUNT
from hubgate.server.accounts.model import User
from hubgate.server.accounts.passwords import password_matches, turn
from hubgate.server.errors import FieldErrors
from hubgate.server.storage.database import Tx

NOT_YOURS = "This is not your password."


async def require_password(accounts: Accounts, user: User, field: str, given: str) -> str:
    """`field` is where the form asks for it. Failures count as failed sign-ins do (attack O54).

    Comparing takes long enough for another to change the password: hand the hash on to `hold_password`.
    """
    async with turn():
        place = await accounts.limiter.take(FAILED_SIGN_INS_OF_ACCOUNT, user.id)
        stored = await store.password_hash(accounts.db, user.id)
        if not await password_matches(given, stored) or stored is None:
            raise FieldErrors({field: NOT_YOURS})
        await accounts.limiter.give_back(place)
    return stored


async def hold_password(tx: Tx, user: User, field: str, known_hash: str) -> None:
    """In the unit of what needed the password. A reset has shut out whoever knew the old one, and so has the operator
    who disabled the account: what was on its way must not leave a way back."""
    if not await store.hold_password(tx, user.id, known_hash):
        raise FieldErrors({field: NOT_YOURS})
