"""Re-authenticates every chain's head after the server secret was replaced."""

from functools import partial

from hubgate.server.audit import store
from hubgate.server.audit.head import Heads
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database

_BATCH = 500


async def reseal(db: Database, secret: ServerSecret) -> int:
    """Create new MACs for all heads; returns how many changed. A head that matches no configured secret is left
    unchanged, so that `hubgate doctor` reports it."""
    macs, changed, after = Heads(secret), 0, ""
    while heads := await db.read_long(partial(store.heads, after=after, most=_BATCH)):
        after = heads[-1].org_id
        for head in heads:
            resealed = macs.vouched(head)
            if resealed.mac != head.mac and macs.is_genuine(head):
                # If this fails, another process moved the head concurrently and used the new secret.
                changed += await db.write(partial(store.put_head, new=resealed, old=head))
    return changed
