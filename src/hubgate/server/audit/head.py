"""The end of a chain under the server secret.

A chain of hashes alone proves order, not truth: who can write SQL could cut its end off, or compute a new chain from
the beginning. They cannot make the MAC of the new end. What remains possible is to put all of an older, genuine state
back; whoever follows the stream or keeps exports notices that (docs/audit.md).
"""

from dataclasses import dataclass, replace

from hubgate.server.audit.chain import head_text
from hubgate.server.audit.model import Head
from hubgate.server.secret import ServerSecret

_PURPOSE = "audit head"


@dataclass(frozen=True)
class Heads:
    secret: ServerSecret

    def vouched(self, head: Head) -> Head:
        return replace(head, mac=self.secret.mac(_PURPOSE, head_text(head).encode()))

    def is_genuine(self, head: Head) -> bool:
        return self.secret.mac_matches(_PURPOSE, head_text(head).encode(), head.mac)
