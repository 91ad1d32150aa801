"""The password once more, before what a borrowed browser must not do."""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import FAILED_SIGN_INS_OF_ACCOUNT
from hubgate.server.accounts.model import User
from hubgate.server.accounts.passwords import password_matches
from hubgate.server.errors import FieldErrors

NOT_YOURS = "This is not your password."


async def require_password(accounts: Accounts, user: User, field: str, given: str) -> None:
    """`field` is where the form asks for it. Failures count as failed sign-ins do (attack O54)."""
    place = await accounts.limiter.take(FAILED_SIGN_INS_OF_ACCOUNT, user.id)
    if not await password_matches(given, await store.password_hash(accounts.db, user.id)):
        raise FieldErrors({field: NOT_YOURS})
    await accounts.limiter.give_back(place)
