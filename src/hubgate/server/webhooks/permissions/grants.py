"""Updates the webhooks of an app after its grant was narrowed or has ended (attack W41).

Permission to report on a repo is checked for every event (`store.py`), so a narrowed or revoked grant takes effect
at once. The background job here updates the webhook and notifies its owner by mail: a webhook whose grant has ended is
suspended; a webhook whose grant was narrowed stays enabled.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import CredentialKind, Identity
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks import notifications
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import backlog_store
from hubgate.server.webhooks.management.store import lock, suspend
from hubgate.server.webhooks.model import CONSENT, EXCHANGE, OWNERS_URL, SUSPENDED, TOKEN, Grant, Webhook
from hubgate.server.webhooks.permissions import store, token_store
from hubgate.server.webhooks.permissions.store import AppWebhook

EVERY_SECONDS = 60.0
_BATCH = 100
_SEE = Action.REPO_SEE.rule
_PRIVATE_READ_SCOPES = frozenset(_SEE.scopes + _SEE.creator_scopes)
_KINDS = {
    CredentialKind.CONSENTED: CONSENT,
    CredentialKind.EXCHANGED: EXCHANGE,
    CredentialKind.FINE_GRAINED: TOKEN,
}


def grant_of(webhooks: Webhooks, identity: Identity) -> Grant | None:
    """The grant of a caller that is an app or a fine-grained token. None for sessions, other personal tokens and the
    hub's command-line tools, which act as the user.
    """
    client_id, user_id = identity.client_id, identity.user_id
    if client_id is None or user_id is None or client_id in webhooks.cli_client_ids:
        return None
    return Grant(client_id, _KINDS[identity.kind], user_id, join_scopes(identity.scopes))


async def read_scopes_of(tx: Tx, grant: Grant, org_id: str | None) -> frozenset[str]:
    """The scopes with which the grant reads private repos: `read-repos` in the user's namespace, `{id}:read-repos` in
    an organization and, for a fine-grained token, in a repo. A webhook of the organization `org_id` reads only that
    organization.
    """
    (found,) = await _read_scopes_of_all(tx, [(grant, org_id)])
    return found


async def _read_scopes_of_all(tx: Tx, grants: Sequence[tuple[Grant, str | None]]) -> list[frozenset[str]]:
    """`read_scopes_of` for several grants, in a statement for each kind."""
    consented = await store.consents_of(tx, [grant for grant, _ in grants if grant.kind == CONSENT])
    exchangeable = await store.exchangeable_scopes(tx, [grant for grant, _ in grants if grant.kind == EXCHANGE])
    limits = await token_store.limits_of(tx, [grant for grant, _ in grants if grant.kind == TOKEN])
    all_scopes = []
    for grant, org_id in grants:
        if grant.kind == TOKEN:
            all_scopes.append(_limited_read_scopes(limits.get(grant.client_id, ()), org_id))
            continue
        read_scopes = _PRIVATE_READ_SCOPES.intersection(parse_scopes(grant.scopes))
        if grant.kind == EXCHANGE:
            all_scopes.append(read_scopes & exchangeable.get(grant.client_id, frozenset()))
        else:
            all_scopes.append(
                _consented_read_scopes(consented.get((grant.user_id, grant.client_id), ()), read_scopes, org_id)
            )
    return all_scopes


def _consented_read_scopes(consent: Sequence[Row], read_scopes: frozenset[str], org_id: str | None) -> frozenset[str]:
    found: set[str] = set()
    for row in consent:
        user_scopes = read_scopes.intersection(parse_scopes(row["scopes"]))
        if org_id is None:
            found |= user_scopes
        if row["org_id"] is not None and org_id in (None, row["org_id"]):
            found |= {f"{row['org_id']}:{name}" for name in user_scopes.intersection(parse_scopes(row["org_scopes"]))}
    return frozenset(found)


def _limited_read_scopes(limits: Sequence[Row], org_id: str | None) -> frozenset[str]:
    found: set[str] = set()
    for row in limits:
        read_scopes = _PRIVATE_READ_SCOPES.intersection(parse_scopes(row["scopes"]))
        if org_id in (None, row["owner_id"]):
            found |= {name if row["kind"] == "user" else f"{row['target_id']}:{name}" for name in read_scopes}
    return frozenset(found)


@dataclass
class GrantChecks:
    """The background job that checks the webhooks of all apps in batches."""

    webhooks: Webhooks
    _after: str = ""

    async def step(self) -> bool:
        """Check a batch, and return whether more batches follow."""
        after = self._after
        found = await _check(self.webhooks, lambda tx: store.app_webhooks(tx, after, _BATCH))
        more = len(found) == _BATCH
        self._after = found[-1].webhook.id if more else ""
        return more


async def check_grants_of(webhooks: Webhooks, user_id: str, client_id: str) -> None:
    """Check the webhooks of an app at once after the user changed the app's permissions."""
    await _check(webhooks, lambda tx: store.app_webhooks_of(tx, user_id, client_id))


async def _check(webhooks: Webhooks, find: Callable[[Tx], Awaitable[list[AppWebhook]]]) -> list[AppWebhook]:
    """Update webhooks whose grants changed. Usually there are none, and nothing is written."""

    async def unit(tx: Tx) -> tuple[list[AppWebhook], dict[str, _Change]]:
        found = await find(tx)
        return found, await _changes(tx, found)

    found, changes = await webhooks.db.read_long(unit)
    for webhook_id in changes:
        await webhooks.db.write_long(partial(_apply_change, webhooks=webhooks, webhook_id=webhook_id))
    return found


class _Change(Struct, frozen=True):
    """A changed grant. `after` is None if the grant has ended."""

    before: frozenset[str]
    after: frozenset[str] | None


async def _changes(tx: Tx, found: Sequence[AppWebhook]) -> dict[str, _Change]:
    """The changed grants, by webhook id."""
    granted = [(each, grant) for each in found if (grant := each.webhook.grant) is not None]
    all_scopes = await _read_scopes_of_all(tx, [(grant, each.webhook.org_id) for each, grant in granted])
    changes = {
        each.webhook.id: _Change(each.read_scopes, scopes if each.is_grant_valid else None)
        for (each, _), scopes in zip(granted, all_scopes, strict=True)
    }
    return {webhook_id: change for webhook_id, change in changes.items() if change.before != change.after}


async def _apply_change(tx: Tx, webhooks: Webhooks, webhook_id: str) -> None:
    now, webhook = webhooks.clock(), await lock(tx, webhook_id)
    change = (await _changes(tx, await store.app_webhook(tx, webhook_id))).get(webhook_id)
    if webhook is None or change is None:
        return
    if change.after is None:
        await suspend(tx, webhook_id, now)
        await backlog_store.skip_all(tx, webhook_id, SUSPENDED, now)
        await notifications.notify_grant_ended(tx, webhooks, webhook)
        return
    await store.set_read_scopes(tx, webhook_id, change.after)
    if change.before - change.after:
        await notifications.notify_grant_narrowed(tx, webhooks, webhook)


def grant_ended_message(webhook: Webhook) -> str:
    """The error message for enabling a webhook whose grant has ended."""
    problem = (
        f"The {webhook.app_noun} that {webhook.app_verb} this webhook no longer has access. {webhook.grant_remedy}"
    )
    if not webhook.taken_over:
        return f"{problem}, or delete the webhook."
    remedy = "save a change" if webhook.taken_over == OWNERS_URL else "set another address"
    return f"{problem}, or {remedy} to take the webhook back."


async def has_grant_ended(webhooks: Webhooks, webhook: Webhook) -> bool:
    """Whether the grant of the webhook's app has ended."""
    if webhook.grant is None:
        return False
    return not await webhooks.db.read(lambda tx: store.is_grant_valid(tx, webhook.id))
