"""The head of a chain, authenticated with a MAC under the server secret.

A hash chain alone does not prove that the log is complete: an attacker with SQL access could truncate the chain or
compute a new chain from the start, but cannot forge the MAC of the new head. Restoring a complete older
state remains possible; readers who follow the stream or store exports can detect that (docs/audit.md).
"""

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.audit import store
from hubgate.server.audit.chain import head_text
from hubgate.server.audit.model import Head
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database

_PURPOSE = "audit head"


class HeadAuthenticator(Struct, frozen=True):
    """Creates and checks the MACs of heads."""

    secret: ServerSecret

    def with_mac(self, head: Head) -> Head:
        return replace(head, mac=self.secret.mac(_PURPOSE, head_text(head).encode()))

    def is_genuine(self, head: Head) -> bool:
        return self.secret.mac_matches(_PURPOSE, head_text(head).encode(), head.mac)


_HEADS_AT_ONCE = 500


async def reseal(db: Database, secret: ServerSecret) -> int:
    """Create new MACs for all heads; returns how many changed. A head that matches no configured secret is left
    unchanged, so that `hubgate doctor` reports it."""
    authenticator, changed, after = HeadAuthenticator(secret), 0, ""
    while heads := await db.read_long(partial(store.heads, after=after, limit=_HEADS_AT_ONCE)):
        after = heads[-1].org_id
        for head in heads:
            resealed = authenticator.with_mac(head)
            if resealed.mac != head.mac and authenticator.is_genuine(head):
                # If this fails, another process moved the head concurrently and used the new secret.
                changed += await db.write(partial(store.put_head, new=resealed, old=head))
    return changed
