"""What every use case on accounts needs, in one value."""

from dataclasses import dataclass

from hubgate.server.clock import Clock
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.throttle.limiter import Limiter


@dataclass(frozen=True)
class Accounts:
    db: Database
    clock: Clock
    secret: ServerSecret
    outbox: Outbox
    limiter: Limiter
    base_url: str
    # open, invite or closed.
    signup: str

    def link(self, path: str) -> str:
        """An address of ours for a mail."""
        return f"{self.base_url}{path}"
