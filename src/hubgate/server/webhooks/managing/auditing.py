"""An organization's webhooks: changed by its admins alone, and each change in its log.

The log names the host a webhook sends to and what was changed, never the rest of an address or a secret: it is kept for
longer than either.
"""

from typing import Any

from hubgate.server.accounts.holding import hold_signed_in
from hubgate.server.accounts.organizations.changing import begin_by_id_as_admin
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.model import Webhook


async def begin(tx: Tx, org_id: str | None, actor: Actor) -> None:
    """`access` judged the caller when the request came in; whoever was demoted or signed out since changes
    nothing."""
    if org_id is not None:
        await begin_by_id_as_admin(tx, org_id, actor)
    else:
        await hold_signed_in(tx, actor.user_id, actor.credentials_version)


async def tell(
    tx: Tx, webhook: Webhook, kind: Kind, does: str, actor: Actor, now: int, data: dict[str, Any] | None = None
) -> None:
    """`does` is a verb: the webhook follows it."""
    if webhook.org_id is None:
        return
    about = {"webhook": webhook.id, **({"host": webhook.host} if webhook.host else {}), **(data or {})}
    await record(tx, webhook.org_id, kind, f"{does} the webhook {_called(webhook)}", actor, now, about)


async def tell_update(tx: Tx, before: Webhook, after: Webhook, changed: list[str], actor: Actor, now: int) -> None:
    """All but the secret, of which there is an entry of its own."""
    if not changed or before.org_id is None:
        return
    about: dict[str, Any] = {"webhook": before.id, "changed": changed}
    if after.host:
        about["host"] = after.host
    if before.host and before.host != after.host:
        about["from"] = before.host
    text = f"changed the webhook {_called(before)}: {', '.join(changed)}"
    await record(tx, before.org_id, Kind.WEBHOOK_UPDATE, text, actor, now, about)


def _called(webhook: Webhook) -> str:
    return f"to {webhook.host}" if webhook.host else webhook.id
