"""The dependencies and limits that all webhook use cases share."""

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.egress.client import Egress
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.model import PACE, Pace
from hubgate.server.webhooks.tunnels.context import Tunnels


class Webhooks(Struct, frozen=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    egress: Egress
    outbox: Outbox
    tunnels: Tunnels
    base_url: str
    # Triggers allowed per webhook in 24 hours; 0 allows no triggers.
    quota: int
    # Webhooks allowed per user or organization.
    max_per_owner: int
    # The client ids of the hub's command-line tools.
    cli_client_ids: tuple[str, ...] = ()
    pace: Pace = PACE
