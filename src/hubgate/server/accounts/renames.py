"""Names of renamed and deleted users and organizations (attack O76): renames are rate-limited, and names that were used
for less than a day and never had repos become free again.
"""

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import RENAMES_OF_ACCOUNT
from hubgate.server.accounts.names import name_key
from hubgate.server.clock import DAY
from hubgate.server.storage.database import Tx


async def enforce_rename_limit(tx: Tx, accounts: Accounts, owner_id: str) -> None:
    """Count a rename against the limit; TooManyRequests if the limit is reached. Runs in the transaction of the rename:
    a rename that fails for another reason does not count.
    """
    await accounts.limiter.require_in(tx, RENAMES_OF_ACCOUNT, owner_id)


async def replace_name(tx: Tx, kind: str, owner_id: str, old: str, new: str, now: int) -> bool:
    """Claim the new name; False if it is taken. The old name stays reserved for its account, which can claim it again
    and can still be found under it, unless it was used for less than a day and never had repos.
    """
    if not await store.claim_name(tx, new, kind, owner_id, now):
        return False
    if name_key(new) != name_key(old):
        await retire_or_delete_name(tx, old, now)
    return True


async def retire_or_delete_name(tx: Tx, name: str, now: int) -> None:
    """Retire a name, which stays reserved; a name that was used for less than a day and never had repos is deleted."""
    if not await store.delete_unused_name(tx, name, now - DAY):
        await store.retire_name(tx, name)
