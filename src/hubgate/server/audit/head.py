"""The head of a chain, authenticated with a MAC under the server secret.

A hash chain alone proves order, not truth: an attacker with SQL access could truncate the chain or compute a new chain
from the start, but cannot create the MAC of the new head. Restoring a complete older state remains possible; readers
who follow the stream or store exports can detect that (docs/audit.md).
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
