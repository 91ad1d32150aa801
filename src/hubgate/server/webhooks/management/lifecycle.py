"""Creating, reading and changing webhooks."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.single_use_forms import VerifiedNonce, consume_nonce
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.clock import DAY, HOUR, SECOND
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.ids import is_id, new_id
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks import notifications
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import audit, store
from hubgate.server.webhooks.management.store import FailingWebhook
from hubgate.server.webhooks.management.validation import (
    InvalidField,
    check_domains,
    check_options,
    check_overlap,
    check_secret,
    check_url,
    check_watched,
)
from hubgate.server.webhooks.model import DOMAINS, ENABLED, OWNER_TYPES, Grant, Watch, Webhook
from hubgate.server.webhooks.options import OPTIONS, OptionValue, default_options
from hubgate.server.webhooks.permissions import grants
from hubgate.server.webhooks.permissions import store as permissions
from hubgate.server.webhooks.sealed_secrets import is_current_secret, new_key, sealed_secret
from hubgate.server.webhooks.shards.store import wake
from hubgate.server.webhooks.watches import store as watches

NOT_FOUND = "Webhook not found."
FAILING_FOR = HOUR


class StoredWebhook(Struct, frozen=True):
    """A stored webhook with its watches under their current names."""

    webhook: Webhook
    watched: Sequence[Watch]
    # The name of the app that created the webhook or took it over.
    app: str = ""


class WebhookRequest(Struct, frozen=True):
    """The requested settings of a webhook. In an update, None leaves a setting unchanged."""

    url: str | None = None
    pull: bool = False
    watched: Sequence[tuple[str, str]] | None = None
    domains: Sequence[str] | None = None
    # An empty string removes the secret.
    secret: str | None = None
    # How long the old secret also signs. None: no overlap for a new secret, no change for the same secret.
    overlap_seconds: int | None = None
    # By name. In a new webhook, an absent option has its default value.
    options: Mapping[str, OptionValue] = field(default_factory=dict)


async def create(
    webhooks: Webhooks,
    owner: Owner,
    settings: WebhookRequest,
    actor: Actor,
    nonce: VerifiedNonce | None = None,
    grant: Grant | None = None,
) -> StoredWebhook:
    """Create a webhook. `nonce` is set for a form that shows the secret, `grant` if the caller is an app."""
    now = webhooks.clock()
    webhook_id = new_id(now)
    if (settings.url is None) is not settings.pull:
        raise InvalidField("url", "Set either url or pull.")
    private_key, public_key = new_key(webhooks.secret, webhook_id)
    webhook = Webhook(
        id=webhook_id,
        user_id=owner.user_id,
        org_id=owner.org_id,
        url=None if settings.url is None else check_url(settings.url, webhooks.egress),
        domains=check_domains(DOMAINS if settings.domains is None else settings.domains),
        secret=_sealed(webhooks, webhook_id, settings.secret),
        old_secret=None,
        old_secret_until=None,
        private_key=private_key,
        public_key=public_key,
        state=ENABLED,
        failing_since=None,
        closed_until=0,
        last_trigger_at=None,
        suspended_at=None,
        created_at=now,
        options={**default_options(), **check_options(settings.options)},
    )
    watched = check_watched(settings.watched or ())

    async def unit(tx: Tx) -> StoredWebhook:
        await audit.lock_for_creation(tx, owner, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        if await store.count_of_owner(tx, owner.user_id, owner.org_id) >= webhooks.max_per_owner:
            raise Unprocessable(f"At most {webhooks.max_per_owner} webhooks. Delete one first.")
        await store.add(tx, webhook)
        await audit.record_change(tx, webhook, EntryType.WEBHOOK_CREATE, "created", actor, now)
        granted = webhook if grant is None else await _set_grant(tx, webhook, grant, now)
        return await _with_watches(tx, granted, watched, webhooks.clock())

    return await webhooks.db.write(unit)


class ConcurrentChange(Exception):
    """The webhook no longer has the version that the caller read: another request changed it."""


async def update(
    webhooks: Webhooks,
    owner: Owner,
    webhook_id: str,
    settings: WebhookRequest,
    actor: Actor,
    nonce: VerifiedNonce | None = None,
    version: int | None = None,
    grant: Grant | None = None,
) -> StoredWebhook:
    """Change a webhook. An empty `watched` changes nothing, because existing clients send it. `nonce` as in `create`.
    Raises ConcurrentChange if `version` is given and is not the current version.

    With `grant`, the app takes the webhook over and the permissions of the app apply: otherwise the app could redirect
    events that only the owner may read. A change without `grant` returns the webhook to its owner, unless the URL is
    the app's.
    """
    if settings.pull and settings.url is not None:
        raise InvalidField("url", "Set either url or pull.")
    watched = check_watched(settings.watched) if settings.watched else None
    domains = None if settings.domains is None else check_domains(settings.domains)
    url = None if settings.url is None else check_url(settings.url, webhooks.egress)
    options = check_options(settings.options)
    overlap, now = check_overlap(settings.overlap_seconds or 0), webhooks.clock()
    sealed = _sealed(webhooks, webhook_id, settings.secret)

    async def unit(tx: Tx) -> StoredWebhook:
        await audit.lock_for_change(tx, owner.org_id, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        before = await lock_webhook(tx, owner, webhook_id)
        if version is not None and version != before.version:
            raise ConcurrentChange
        watched_before = await watches.of_webhook(tx, webhook_id)
        after = replace(
            before,
            url=None if settings.pull else url or before.url,
            domains=domains or before.domains,
            options={**before.options, **options},
            version=before.version + 1,
        )
        if settings.secret and is_current_secret(webhooks.secret, before, settings.secret):
            if settings.overlap_seconds is not None and (before.old_secret_until or 0) > now:
                after = _with_old_secret(after, before.old_secret, overlap, now)
        elif settings.secret is not None:
            after = _with_old_secret(replace(after, secret=sealed), before.secret if sealed else None, overlap, now)
        taken_over = grant is not None and not grant.manages(before)
        reclaimed = grant is None and before.is_reclaimed_with(after.url)
        if taken_over:
            after = _with_new_credentials(webhooks, after, sealed)
        elif reclaimed:
            # The app may know the old secret.
            after = replace(after, secret=sealed, old_secret=None, old_secret_until=None)
        await store.update(tx, after)
        if grant is not None:
            after = await _set_grant(
                tx, replace(after, taken_over=before.taken_over_after_change(after.url)), grant, now
            )
        elif reclaimed:
            after = await _return_to_owner(tx, after, actor, now)
        if taken_over:
            await audit.record_takeover(tx, after, "took over", "with", await _app_name(tx, after), actor, now)
            await notifications.notify_taken_over(tx, webhooks, after)
            if watched is None:
                await _drop_watches_beyond_grant(tx, webhook_id)
        if after.url != before.url:
            # Failures of the old URL do not count for the new URL.
            await store.reset_failures(tx, webhook_id)
        await wake(tx, [webhook_id], now)
        stored = (
            StoredWebhook(after, await watches.of_webhook(tx, webhook_id))
            if watched is None
            else await _with_watches(tx, after, watched, webhooks.clock())
        )
        changed = _changed_settings(before, after)
        changed += ["watched"] if list(stored.watched) != watched_before else []
        await audit.record_update(tx, before, after, changed, actor, now)
        if after.secret and _secrets(after) != _secrets(before):
            details = {"overlapSeconds": overlap} if after.old_secret else {}
            await audit.record_change(tx, after, EntryType.WEBHOOK_SET_SECRET, "set the secret of", actor, now, details)
        elif before.secret and not after.secret:
            await audit.record_change(tx, after, EntryType.WEBHOOK_DELETE_SECRET, "removed the secret of", actor, now)
        return stored

    return await webhooks.db.write(unit)


def _changed_settings(before: Webhook, after: Webhook) -> list[str]:
    """The names of changed settings for the audit log, without the secret and the watched names."""
    changed = [name for name in ("url", "domains") if getattr(before, name) != getattr(after, name)]
    audited = (option for option in OPTIONS if option.audited)
    return changed + [each.wire for each in audited if before.options[each.name] != after.options[each.name]]


async def get(webhooks: Webhooks, owner: Owner, webhook_id: str) -> StoredWebhook:
    async def unit(tx: Tx) -> StoredWebhook:
        found = await store.find(tx, webhook_id, owner.user_id, owner.org_id) if is_id(webhook_id) else None
        if found is None:
            raise NotFound(NOT_FOUND)
        return StoredWebhook(found, await watches.of_webhook(tx, webhook_id), await _app_name(tx, found))

    return await webhooks.db.read(unit)


async def list_webhooks(webhooks: Webhooks, owner: Owner) -> list[StoredWebhook]:
    async def unit(tx: Tx) -> list[StoredWebhook]:
        watched = await watches.of_owner(tx, owner.user_id, owner.org_id)
        found = await store.of_owner(tx, owner.user_id, owner.org_id)
        return [StoredWebhook(webhook, watched.get(webhook.id, [])) for webhook in found]

    return await webhooks.db.read_long(unit)


async def shown_to_app(webhooks: Webhooks, found: Sequence[StoredWebhook], grant: Grant) -> list[StoredWebhook]:
    """Hide the watched names of webhooks that the app does not manage, except accounts and public repos: the user did
    not grant the app access to private names. Names of missing repos are hidden too, since they may be private.
    """
    foreign = [stored for stored in found if not grant.manages(stored.webhook)]
    targets = {watch.target_id for stored in foreign for watch in stored.watched if watch.target_id}
    public = await webhooks.db.read(lambda tx: watches.public_among(tx, sorted(targets))) if targets else set()

    def with_visible_names(stored: StoredWebhook) -> StoredWebhook:
        shown = [watch for watch in stored.watched if watch.type in OWNER_TYPES or watch.target_id in public]
        return StoredWebhook(stored.webhook, shown)

    return [stored if grant.manages(stored.webhook) else with_visible_names(stored) for stored in found]


async def busiest_webhooks(webhooks: Webhooks, user_id: str, limit: int) -> list[tuple[Webhook, str | None]]:
    """Webhooks of the user and of organizations the user administers, those with the most deliveries in a day first,
    with the name of the organization.
    """
    since = webhooks.clock() // HOUR * HOUR - DAY + HOUR
    return await webhooks.db.read_long(lambda tx: store.busiest(tx, user_id, since, limit))


async def failing_webhooks(
    webhooks: Webhooks, user_id: str, limit: int
) -> tuple[list[FailingWebhook], dict[str | None, int]]:
    """Webhooks that need attention, because they are suspended or have been failing for FAILING_FOR, and how
    many more there are, by organization name; the key None is for the user's own.
    """
    before = webhooks.clock() - FAILING_FOR

    async def unit(tx: Tx) -> tuple[list[FailingWebhook], dict[str | None, int]]:
        found = await store.failing_webhooks(tx, user_id, before, limit)
        if len(found) < limit:
            return found, {}
        listed = Counter(webhook.organization for webhook in found)
        totals = await store.count_failing(tx, user_id, before)
        return found, {name: count - listed[name] for name, count in totals.items() if count > listed[name]}

    return await webhooks.db.read_long(unit)


async def lock_webhook(tx: Tx, owner: Owner, webhook_id: str) -> Webhook:
    """Lock a webhook of the owner until the transaction ends."""
    webhook = await store.lock(tx, webhook_id) if is_id(webhook_id) else None
    if webhook is None or (webhook.user_id, webhook.org_id) != (owner.user_id, owner.org_id):
        raise NotFound(NOT_FOUND)
    return webhook


async def _set_grant(tx: Tx, webhook: Webhook, grant: Grant, now: int) -> Webhook:
    granted = replace(
        webhook,
        client_id=grant.client_id,
        grant_kind=grant.kind,
        granted_by=grant.user_id,
        granted_scopes=grant.scopes,
    )
    await permissions.set_grant(tx, granted, await grants.read_scopes_of(tx, grant, webhook.org_id), now)
    return granted


async def _return_to_owner(tx: Tx, webhook: Webhook, actor: Actor, now: int) -> Webhook:
    await audit.record_takeover(tx, webhook, "reclaimed", "from", await _app_name(tx, webhook), actor, now)
    await permissions.clear_grant(tx, webhook.id)
    return replace(webhook, client_id=None, grant_kind=None, granted_by=None, granted_scopes=None, taken_over=0)


async def _app_name(tx: Tx, webhook: Webhook) -> str:
    return await permissions.app_name(tx, webhook.grant) if webhook.grant else ""


def _with_new_credentials(webhooks: Webhooks, webhook: Webhook, sealed: bytes | None) -> Webhook:
    """Replace the secret and the key when an app takes a webhook over: with the old ones its deliveries would carry the
    owner's signature (attacks O74, W41).
    """
    private_key, public_key = new_key(webhooks.secret, webhook.id)
    return replace(
        webhook,
        secret=sealed,
        old_secret=None,
        old_secret_until=None,
        private_key=private_key,
        public_key=public_key,
    )


async def _drop_watches_beyond_grant(tx: Tx, webhook_id: str) -> None:
    """Remove watches that the grant does not cover from a webhook that an app takes over: the app would learn the names
    of private repos.
    """
    await watches.drop_beyond_grant(tx, webhook_id)
    if not await watches.of_webhook(tx, webhook_id):
        raise InvalidField(
            "watched", "Choose what to watch: this token may not see the repos that this webhook watches now."
        )


async def _with_watches(tx: Tx, webhook: Webhook, watched: Sequence[Watch], now: int) -> StoredWebhook:
    # `now` was read inside the transaction: a new watch does not apply to changes from before the transaction.
    bound = [replace(watch, target_id=await watches.target_of(tx, watch)) for watch in watched]
    await watches.set_all(tx, webhook.id, bound, now)
    return StoredWebhook(webhook, await watches.of_webhook(tx, webhook.id))


def _with_old_secret(webhook: Webhook, old: bytes | None, seconds: int, now: int) -> Webhook:
    overlaps = bool(old and seconds)
    return replace(
        webhook, old_secret=old if overlaps else None, old_secret_until=now + seconds * SECOND if overlaps else None
    )


def _secrets(webhook: Webhook) -> tuple[bytes | None, bytes | None, int | None]:
    return webhook.secret, webhook.old_secret, webhook.old_secret_until


def _sealed(webhooks: Webhooks, webhook_id: str, secret: str | None) -> bytes | None:
    return sealed_secret(webhooks.secret, webhook_id, check_secret(secret)) if secret else None
