"""When the server secret is replaced: every chain's end under the new one."""

from functools import partial

from hubgate.server.audit import store
from hubgate.server.audit.head import Heads
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database

_AT_ONCE = 500


async def reseal(db: Database, secret: ServerSecret) -> int:
    """How many were changed. An end that no configured secret vouches for stays as it is, for the doctor to tell."""
    vouching, changed, after = Heads(secret), 0, ""
    while heads := await db.read_long(partial(store.heads, after=after, most=_AT_ONCE)):
        after = heads[-1].org_id
        for head in heads:
            again = vouching.vouched(head)
            if again.mac != head.mac and vouching.is_genuine(head):
                # Moved meanwhile, it was vouched for by a hub that has the new secret already.
                changed += await db.write(partial(store.put_head, new=again, old=head))
    return changed
