"""What renames of users and organizations share (O76): they are limited, and names that an account only passed through
are free for others again.
"""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import RENAMES_OF_ACCOUNT
from hubgate.server.accounts.names import name_key
from hubgate.server.clock import DAY
from hubgate.server.storage.database import Tx


async def count_rename(tx: Tx, accounts: Accounts, owner_id: str) -> None:
    """In the unit of the rename: one that is refused for another reason does not count."""
    await accounts.limiter.require_in(tx, RENAMES_OF_ACCOUNT, owner_id)


async def exchange_names(tx: Tx, kind: str, owner_id: str, old: str, new: str, now: int) -> bool:
    """Take the new name; False if it is taken. The old one stays reserved for its account, which may return to it and
    is found by it, unless it was held for less than a day and never had repos.
    """
    if not await store.claim_name(tx, new, kind, owner_id, now):
        return False
    if name_key(new) != name_key(old) and not await store.free_name(tx, old, now - DAY):
        await store.retire_name(tx, old)
    return True
