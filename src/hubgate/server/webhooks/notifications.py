"""Mail to the owner of a webhook: half-way to suspension, on suspension, when the grant of its app is narrowed or ends,
and when an app takes the webhook over.

Mail is queued in the transaction of the change. For an organization's webhook all admins are notified, and suspensions
are also recorded in the audit log.
"""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from hubgate.server.audit.model import SYSTEM, EntryType
from hubgate.server.clock import iso
from hubgate.server.mail import texts
from hubgate.server.mail.message import Message
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import audit, store
from hubgate.server.webhooks.management.store import OwnerAddress
from hubgate.server.webhooks.model import SUSPENDED_AFTER, TOKEN, Webhook
from hubgate.server.webhooks.permissions.store import app_name


async def warn_half_way(tx: Tx, webhooks: Webhooks, webhook_id: str, failing_since: int, status: int | None) -> None:
    last_status = "none" if status is None else str(status)
    for owner in await store.owner_addresses(tx, webhook_id):
        mail = texts.webhook_failing(
            owner.email,
            _host(owner),
            _utc_minute(failing_since),
            last_status,
            _utc_minute(failing_since + SUSPENDED_AFTER)[:10],
            _link(webhooks, owner, webhook_id),
        )
        await webhooks.outbox.add(tx, mail)


async def notify_suspended(tx: Tx, webhooks: Webhooks, webhook_id: str, missed: int) -> None:
    webhook = await store.lock(tx, webhook_id)
    if webhook is not None:
        await audit.record_change(tx, webhook, EntryType.WEBHOOK_SUSPEND, "suspended", SYSTEM, webhooks.clock())
    for owner in await store.owner_addresses(tx, webhook_id):
        mail = texts.webhook_suspended(owner.email, _host(owner), missed, _link(webhooks, owner, webhook_id))
        await webhooks.outbox.add(tx, mail)


async def notify_grant_ended(tx: Tx, webhooks: Webhooks, webhook: Webhook) -> None:
    """Notify the owner that the webhook was suspended because its app lost access."""
    data = {"reason": f"the {webhook.app_noun} that {webhook.app_verb} it lost its access"}
    await audit.record_change(tx, webhook, EntryType.WEBHOOK_SUSPEND, "suspended", SYSTEM, webhooks.clock(), data)
    text = partial(texts.webhook_app_revoked, app_verb=webhook.app_verb, remedy=webhook.grant_remedy)
    await _mail_about_app(tx, webhooks, webhook, text)


async def notify_grant_narrowed(tx: Tx, webhooks: Webhooks, webhook: Webhook) -> None:
    await _mail_about_app(tx, webhooks, webhook, partial(texts.webhook_app_narrowed, app_verb=webhook.app_verb))


async def notify_taken_over(tx: Tx, webhooks: Webhooks, webhook: Webhook) -> None:
    await _mail_about_app(tx, webhooks, webhook, texts.webhook_taken_over)


async def _mail_about_app(
    tx: Tx, webhooks: Webhooks, webhook: Webhook, text: Callable[[str, str, str, str], Message]
) -> None:
    if webhook.grant is None:
        return
    name = await app_name(tx, webhook.grant)
    app = f"The token {name}" if webhook.grant.kind == TOKEN else name
    for owner in await store.owner_addresses(tx, webhook.id):
        host = _host(owner) or webhook.id
        await webhooks.outbox.add(tx, text(owner.email, host, app, _link(webhooks, owner, webhook.id)))


def _host(owner: OwnerAddress) -> str:
    return urlsplit(owner.url or "").netloc


def _link(webhooks: Webhooks, owner: OwnerAddress, webhook_id: str) -> str:
    root = f"/organizations/{owner.organization}" if owner.organization else ""
    return f"{webhooks.base_url}{root}/settings/webhooks/{webhook_id}"


def _utc_minute(at: int) -> str:
    return f"{iso(at)[:16].replace('T', ' ')} UTC"
