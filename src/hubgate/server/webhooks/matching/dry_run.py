"""A dry run: the events of the last seven days that a webhook with given settings would have received."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts.model import Owner
from hubgate.server.clock import DAY
from hubgate.server.events.payload import EventNames
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, WebhookRequest
from hubgate.server.webhooks.management.validation import check_domains, check_options, check_url, check_watched
from hubgate.server.webhooks.matching import store
from hubgate.server.webhooks.matching.store import MatchingEvent, Reader
from hubgate.server.webhooks.model import DOMAINS, OWNER_TYPES, Grant, Watch, Webhook
from hubgate.server.webhooks.permissions.store import exchanged_under
from hubgate.server.webhooks.watches import store as watches

SPAN = 7 * DAY
MAX_EVENTS = 1000


class DryRun(Struct, frozen=True):
    """The newest events, newest first, at most MAX_EVENTS. Nothing was sent or stored."""

    events: Sequence[MatchingEvent]


async def of_new(webhooks: Webhooks, owner: Owner, settings: WebhookRequest, grant: Grant | None = None) -> DryRun:
    """A dry run of a webhook that is not created yet. `grant` is given if the caller is an app."""
    watched = check_watched(settings.watched or ())
    domains = check_domains(DOMAINS if settings.domains is None else settings.domains)
    _check_others(webhooks, settings)

    async def unit(tx: Tx) -> DryRun:
        reader = await _granted(tx, Reader(owner.user_id, owner.org_id), grant)
        return await _run(tx, webhooks, reader, await _bound(tx, watched), domains)

    return await webhooks.db.read_long(unit)


async def of_update(
    webhooks: Webhooks, stored: StoredWebhook, settings: WebhookRequest, grant: Grant | None = None
) -> DryRun:
    """A dry run of a webhook after a change. Settings that the request leaves out are the stored ones."""
    webhook = stored.webhook
    watched = check_watched(settings.watched) if settings.watched else None
    domains = webhook.domains if settings.domains is None else check_domains(settings.domains)
    _check_others(webhooks, settings)

    async def unit(tx: Tx) -> DryRun:
        reader = await _reader_after(tx, webhook, settings.url or webhook.url, grant)
        targets = stored.watched if watched is None else await _bound(tx, watched)
        return await _run(tx, webhooks, reader, targets, domains)

    return await webhooks.db.read_long(unit)


def _check_others(webhooks: Webhooks, settings: WebhookRequest) -> None:
    """Check the settings that do not decide which events match, as saving would."""
    if settings.url is not None:
        check_url(settings.url, webhooks.egress)
    check_options(settings.options)


async def _reader_after(tx: Tx, webhook: Webhook, url: str | None, grant: Grant | None) -> Reader:
    reader = Reader(webhook.user_id, webhook.org_id)
    if grant is None and webhook.grant is not None and not webhook.is_reclaimed_with(url):
        under = await store.granted_under(tx, webhook.id)
        return replace(await _granted(tx, reader, webhook.grant), granted_under=under)
    return await _granted(tx, reader, grant)


async def _granted(tx: Tx, reader: Reader, grant: Grant | None) -> Reader:
    if grant is None:
        return reader
    return replace(
        reader,
        client_id=grant.client_id,
        grant_kind=grant.kind,
        granted_by=grant.user_id,
        granted_scopes=grant.scopes,
        granted_under=await exchanged_under(tx, reader.org_id, grant),
    )


async def _bound(tx: Tx, watched: Sequence[Watch]) -> list[Watch]:
    return [replace(watch, target_id=await watches.target_of(tx, watch)) for watch in watched]


async def _run(tx: Tx, webhooks: Webhooks, reader: Reader, watched: Sequence[Watch], domains: str) -> DryRun:
    targets = {(watch.target_id, watch.type in OWNER_TYPES) for watch in watched if watch.target_id}
    since = webhooks.clock() - SPAN
    found = await store.matching_events(tx, reader, sorted(targets), domains.split(), since, MAX_EVENTS)
    newest = sorted(found.values(), key=lambda event: (event.created_at, event.id), reverse=True)[:MAX_EVENTS]
    return DryRun(await with_names(tx, newest))


async def with_names(tx: Tx, events: Sequence[MatchingEvent]) -> list[MatchingEvent]:
    """Events with the names of their repos; for deleted repos, those at the event."""
    bodies = await store.bodies(tx, [event.id for event in events if event.repo_name is None])
    return [
        replace(event, repo_name=msgspec.json.decode(bodies[event.id], type=EventNames).repo.name)
        if event.id in bodies
        else event
        for event in events
    ]
