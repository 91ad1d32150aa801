"""The dependencies and limits that all webhook use cases share."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from hubgate.server.clock import Clock
from hubgate.server.egress.client import Egress
from hubgate.server.egress.hosted_links import HostedLink
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database
from hubgate.server.webhooks.model import PACE, Pace
from hubgate.server.webhooks.tunnels.context import Tunnels
from hubgate.server.webhooks.tunnels.model import Answer, Headers

# Called with the webhook, its address, headers, body, and seconds to wait. It fails like `Forwarding.forward`.
DeliverToSpace = Callable[[str, HostedLink, Headers, bytes, float], Awaitable[Answer]]


class Webhooks(Struct, frozen=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    egress: Egress
    outbox: Outbox
    tunnels: Tunnels
    deliver_to_space: DeliverToSpace
    base_url: str
    # Triggers allowed per webhook in 24 hours; 0 allows no triggers.
    quota: int
    # Webhooks allowed per user or organization.
    max_per_owner: int
    # The client ids of the hub's command-line tools.
    cli_client_ids: tuple[str, ...] = ()
    pace: Pace = PACE
