"""What every use case of webhooks needs, in one value."""

from dataclasses import dataclass

from hubgate.server.clock import Clock
from hubgate.server.egress.client import Egress
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.model import PACE, Pace


@dataclass(frozen=True)
class Webhooks:
    db: Database
    clock: Clock
    secret: ServerSecret
    egress: Egress
    outbox: Outbox
    base_url: str
    # Triggers of one webhook in 24 hours; 0 is none.
    quota: int
    per_owner: int
    # Apps that are the hub's own command lines.
    cli_client_ids: tuple[str, ...] = ()
    pace: Pace = PACE
