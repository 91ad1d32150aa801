"""Permission checks for changes to webhooks, and audit log entries for an organization's webhooks.

An entry contains the host of the URL and the names of the changed fields, never the rest of the URL or a secret: the
log outlives both.
"""

from typing import Any

from hubgate.server.accounts.account_locks import lock_account_and_credentials, lock_credentials
from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.organizations.locks import lock_organization_by_id_as_admin
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.model import Webhook


async def lock_for_change(tx: Tx, org_id: str | None, actor: Actor) -> None:
    """Lock the account before a change, and reject a caller who was demoted or signed out since the access check."""
    if org_id is not None:
        await lock_organization_by_id_as_admin(tx, org_id, actor)
    else:
        await lock_credentials(tx, actor.user_id, actor.credentials_version)


async def lock_for_creation(tx: Tx, owner: Owner, actor: Actor) -> None:
    """Lock the account before a webhook is created, with the checks of `lock_for_change`. The owner must still exist,
    and stays locked until the transaction ends, so that concurrent requests cannot exceed the limit.
    """
    if owner.user_id is not None:
        await lock_account_and_credentials(tx, owner.user_id, actor.credentials_version)
    else:
        await lock_for_change(tx, owner.org_id, actor)


async def record_change(
    tx: Tx, webhook: Webhook, kind: EntryType, verb: str, actor: Actor, now: int, data: dict[str, Any] | None = None
) -> None:
    """Record a change. `verb` is followed by the name of the webhook in the text of the entry."""
    if webhook.org_id is None:
        return
    details = {"webhook": webhook.id, **({"host": webhook.host} if webhook.host else {}), **(data or {})}
    await record(tx, webhook.org_id, kind, f"{verb} the webhook {_label(webhook)}", actor, now, details)


async def record_update(tx: Tx, before: Webhook, after: Webhook, changed: list[str], actor: Actor, now: int) -> None:
    """Record changed settings. A changed secret has a separate entry."""
    if not changed or before.org_id is None:
        return
    details: dict[str, Any] = {"webhook": before.id, "changed": changed}
    if after.host:
        details["host"] = after.host
    if before.host and before.host != after.host:
        details["from"] = before.host
    text = f"changed the webhook {_label(before)}: {', '.join(changed)}"
    await record(tx, before.org_id, EntryType.WEBHOOK_UPDATE, text, actor, now, details)


async def record_takeover(
    tx: Tx, webhook: Webhook, verb: str, preposition: str, app: str, actor: Actor, now: int
) -> None:
    """Record that an app took over a webhook or that the owner took it back. `app` is the name of the app."""
    if webhook.org_id is not None and webhook.client_id is not None:
        details = {"webhook": webhook.id, "app": webhook.client_id}
        text = f"{verb} the webhook {_label(webhook)} {preposition} the {webhook.app_noun} {app}"
        await record(tx, webhook.org_id, EntryType.WEBHOOK_UPDATE, text, actor, now, details)


def _label(webhook: Webhook) -> str:
    return f"to {webhook.host}" if webhook.host else webhook.id
