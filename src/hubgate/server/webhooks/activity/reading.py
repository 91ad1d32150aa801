"""The list of deliveries of a webhook, and one of them with its tries."""

from collections.abc import Sequence
from dataclasses import dataclass

from hubgate.server.errors import NotFound
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.activity import store
from hubgate.server.webhooks.activity.store import Filter, Logged
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.request import with_webhook
from hubgate.server.webhooks.model import Webhook

CURSOR = (int,)
NO_SUCH = "There is no such delivery."
_AFTER_ALL = 2**62


@dataclass(frozen=True)
class InFull:
    logged: Logged
    # As it was sent; None once the event was dropped.
    payload: bytes | None
    tries: Sequence[Row]


async def page(webhooks: Webhooks, webhook: Webhook, wanted: Filter, asked: PageRequest) -> Page[Logged]:
    before = int(asked.after[0]) if asked.after else _AFTER_ALL
    found = await webhooks.db.read_long(lambda tx: store.page(tx, webhook.id, wanted, before, asked.fetch))
    return page_of(found, asked, lambda logged: (logged.seq,))


async def one(webhooks: Webhooks, webhook: Webhook, delivery_id: str) -> InFull:
    async def unit(tx: Tx) -> InFull:
        logged = await store.one(tx, webhook.id, delivery_id)
        if logged is None:
            raise NotFound(NO_SUCH)
        body = await store.body(tx, delivery_id)
        return InFull(
            logged, None if body is None else with_webhook(body, webhook.id), await store.tries(tx, delivery_id)
        )

    return await webhooks.db.read_long(unit)
