"""Mail to the owner of a webhook that keeps failing: half-way to its suspension, and when it is suspended."""

from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks


async def half_way(tx: Tx, webhooks: Webhooks, webhook_id: str) -> None:
    del tx, webhooks, webhook_id


async def suspended(tx: Tx, webhooks: Webhooks, webhook_id: str, *, gone: bool) -> None:
    del tx, webhooks, webhook_id, gone
