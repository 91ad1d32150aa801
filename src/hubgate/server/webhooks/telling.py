"""Mail to the owner of a webhook that keeps failing: half-way to its suspension, and when it is suspended.

Written in the unit that suspends it; an organization's webhook tells its admins.
"""

from urllib.parse import urlsplit

from hubgate.server.clock import iso
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.managing import store
from hubgate.server.webhooks.managing.store import Addressed
from hubgate.server.webhooks.model import SUSPENDED_AFTER


async def half_way(tx: Tx, webhooks: Webhooks, webhook_id: str, failing_since: int, status: int | None) -> None:
    said = "none" if status is None else str(status)
    for owner in await store.owners_of(tx, webhook_id):
        mail = texts.webhook_failing(
            owner.email,
            _host(owner),
            _moment(failing_since),
            said,
            _moment(failing_since + SUSPENDED_AFTER)[:10],
            _link(webhooks, owner, webhook_id),
        )
        await webhooks.outbox.add(tx, mail)


async def suspended(tx: Tx, webhooks: Webhooks, webhook_id: str, waiting: int) -> None:
    for owner in await store.owners_of(tx, webhook_id):
        mail = texts.webhook_suspended(owner.email, _host(owner), waiting, _link(webhooks, owner, webhook_id))
        await webhooks.outbox.add(tx, mail)


def _host(owner: Addressed) -> str:
    return urlsplit(owner.url or "").netloc


def _link(webhooks: Webhooks, owner: Addressed, webhook_id: str) -> str:
    root = f"/organizations/{owner.organization}" if owner.organization else ""
    return f"{webhooks.base_url}{root}/settings/webhooks/{webhook_id}"


def _moment(at: int) -> str:
    return f"{iso(at)[:16].replace('T', ' ')} UTC"
