"""Making, changing, switching and deleting a webhook."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hubgate.server.accounts.form_once import OneUse, use_up
from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.clock import HOUR, SECOND
from hubgate.server.errors import Conflict, NotFound, Unprocessable
from hubgate.server.ids import is_id, new_id
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks import telling
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.entitled.store import is_under_grant
from hubgate.server.webhooks.managing import auditing, grants, store
from hubgate.server.webhooks.managing.checking import (
    Mend,
    check_domains,
    check_overlap,
    check_secret,
    check_url,
    check_watched,
)
from hubgate.server.webhooks.managing.store import Troubled
from hubgate.server.webhooks.model import DISABLED, DOMAINS, ENABLED, Grant, Watch, Webhook
from hubgate.server.webhooks.sealed import is_secret, new_key, sealed_secret

NO_SUCH = "There is no such webhook."
FAILING_FOR = HOUR
# What an owner sets, beside the secret and what is watched; called alike on the wire.
_SET = ("url", "domains", "ordered")


@dataclass(frozen=True)
class Kept:
    """A webhook with what it watches, by present names."""

    webhook: Webhook
    watched: Sequence[Watch]
    # The name of the app that created it.
    app: str = ""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a new webhook, or changed in one: None leaves a thing as it is."""

    url: str | None = None
    pull: bool = False
    watched: Sequence[tuple[str, str]] | None = None
    domains: Sequence[str] | None = None
    # Empty takes the secret away.
    secret: str | None = None
    # How long the secret before signs too; None is none for a new secret, and as it was for the same.
    overlap_seconds: int | None = None
    ordered: bool | None = None


async def create(
    webhooks: Webhooks,
    owner: Owner,
    wanted: Wanted,
    actor: Actor,
    use: OneUse | None = None,
    grant: Grant | None = None,
) -> Kept:
    """`use` is of a form whose answer shows the secret: sent again, it makes nothing. `grant` is that of an app."""
    now = webhooks.clock()
    webhook_id = new_id(now)
    if (wanted.url is None) is not wanted.pull:
        raise Mend("url", "Say where to, or pull instead.")
    private_key, public_key = new_key(webhooks.secret, webhook_id)
    webhook = Webhook(
        id=webhook_id,
        user_id=owner.user_id,
        org_id=owner.org_id,
        url=None if wanted.url is None else check_url(wanted.url, webhooks.egress),
        domains=check_domains(DOMAINS if wanted.domains is None else wanted.domains),
        secret=_sealed(webhooks, webhook_id, wanted.secret),
        old_secret=None,
        old_secret_until=None,
        private_key=private_key,
        public_key=public_key,
        ordered=int(bool(wanted.ordered)),
        state=ENABLED,
        failing_since=None,
        closed_until=0,
        last_trigger_at=None,
        suspended_at=None,
        created_at=now,
    )
    watched = check_watched(wanted.watched or ())

    async def unit(tx: Tx) -> Kept:
        await auditing.begin(tx, owner.org_id, actor)
        if use is not None:
            await use_up(tx, use)
        if not await store.hold_owner(tx, owner.user_id, owner.org_id):
            raise NotFound("There is no such account any more.")
        if await store.count_of_owner(tx, owner.user_id, owner.org_id) >= webhooks.per_owner:
            raise Unprocessable(f"At most {webhooks.per_owner} webhooks. Delete one first.")
        await store.add(tx, webhook)
        await auditing.tell(tx, webhook, Kind.WEBHOOK_CREATE, "created", actor, now)
        return await _with_watches(tx, await _under(tx, webhook, grant, now), watched, webhooks.clock())

    return await webhooks.db.write(unit)


class ChangedMeanwhile(Exception):
    """It is not any more what it was when the change was thought of."""


async def update(
    webhooks: Webhooks,
    owner: Owner,
    webhook_id: str,
    wanted: Wanted,
    actor: Actor,
    use: OneUse | None = None,
    as_of: Kept | None = None,
    grant: Grant | None = None,
) -> Kept:
    """Existing clients send an empty `watched` where nothing is to change. `use` is as in `create`. Only where its
    settings are still those of `as_of`, if that is given; otherwise ChangedMeanwhile. With the `grant` of an app the
    webhook is that app's from now on: otherwise it could send what others may read to an address of its own.
    """
    if wanted.pull and wanted.url is not None:
        raise Mend("url", "Say where to, or pull instead.")
    watched = check_watched(wanted.watched) if wanted.watched else None
    domains = None if wanted.domains is None else check_domains(wanted.domains)
    url = None if wanted.url is None else check_url(wanted.url, webhooks.egress)
    overlap, now = check_overlap(wanted.overlap_seconds or 0), webhooks.clock()
    sealed = _sealed(webhooks, webhook_id, wanted.secret)

    async def unit(tx: Tx) -> Kept:
        await auditing.begin(tx, owner.org_id, actor)
        if use is not None:
            await use_up(tx, use)
        before = await held(tx, owner, webhook_id)
        watched_before = await store.watches_of(tx, webhook_id)
        if as_of is not None and _set(as_of) != _set(Kept(before, watched_before)):
            raise ChangedMeanwhile
        after = replace(
            before,
            url=None if wanted.pull else url or before.url,
            domains=domains or before.domains,
            ordered=before.ordered if wanted.ordered is None else int(wanted.ordered),
        )
        if wanted.secret and is_secret(webhooks.secret, before, wanted.secret):
            if wanted.overlap_seconds is not None and (before.old_secret_until or 0) > now:
                after = _overlapping(after, before.old_secret, overlap, now)
        elif wanted.secret is not None:
            after = _overlapping(replace(after, secret=sealed), before.secret if sealed else None, overlap, now)
        taken_over = grant is not None and not grant.created(before)
        if taken_over:
            after = _without_secrets(webhooks, after, sealed)
        await store.update(tx, after)
        after = await _under(tx, after, grant, now)
        if taken_over:
            await telling.taken_over(tx, webhooks, after)
            if watched is None:
                await _hide_beyond_grant(tx, webhook_id)
        if after.url != before.url:
            # What the old address did is not held against the new one.
            await store.forgive(tx, webhook_id)
            await queue.replan(tx, [webhook_id], now)
        kept = (
            Kept(after, await store.watches_of(tx, webhook_id))
            if watched is None
            else await _with_watches(tx, after, watched, webhooks.clock())
        )
        changed = [name for name in _SET if getattr(before, name) != getattr(after, name)]
        changed += ["watched"] if list(kept.watched) != watched_before else []
        await auditing.tell_update(tx, before, after, changed, actor, now)
        if after.secret and _secrets(after) != _secrets(before):
            overlap_told = {"overlapSeconds": overlap} if after.old_secret else {}
            await auditing.tell(tx, after, Kind.WEBHOOK_SET_SECRET, "set the secret of", actor, now, overlap_told)
        elif before.secret and not after.secret:
            await auditing.tell(tx, after, Kind.WEBHOOK_DELETE_SECRET, "removed the secret of", actor, now)
        return kept

    return await webhooks.db.write(unit)


def _set(kept: Kept) -> tuple[object, ...]:
    return kept.webhook.url, kept.webhook.domains, kept.webhook.ordered, list(kept.watched)


async def switch(webhooks: Webhooks, owner: Owner, webhook_id: str, actor: Actor, *, on: bool) -> Kept:
    """Off, what is queued is skipped and can be replayed; on, only what comes after is sent."""
    now = webhooks.clock()

    async def unit(tx: Tx) -> Kept:
        await auditing.begin(tx, owner.org_id, actor)
        before = await held(tx, owner, webhook_id)
        if on:
            await require_grant(tx, webhook_id)
            await store.enable(tx, webhook_id)
        elif before.state != DISABLED:
            await store.disable(tx, webhook_id)
            await queue.skip_all(tx, webhook_id, DISABLED, now)
        state = ENABLED if on else DISABLED
        if before.state != state:
            kind, does = (Kind.WEBHOOK_ENABLE, "enabled") if on else (Kind.WEBHOOK_DISABLE, "disabled")
            await auditing.tell(tx, before, kind, does, actor, now)
        return Kept(replace(before, state=state), await store.watches_of(tx, webhook_id))

    return await webhooks.db.write_long(unit)


async def get(webhooks: Webhooks, owner: Owner, webhook_id: str) -> Kept:
    async def unit(tx: Tx) -> Kept:
        found = await store.find(tx, webhook_id, owner.user_id, owner.org_id) if is_id(webhook_id) else None
        if found is None:
            raise NotFound(NO_SUCH)
        app = await store.app_name(tx, found.grant) if found.grant else ""
        return Kept(found, await store.watches_of(tx, webhook_id), app)

    return await webhooks.db.read(unit)


async def every(webhooks: Webhooks, owner: Owner) -> list[Kept]:
    async def unit(tx: Tx) -> list[Kept]:
        watches = await store.watches_of_owner(tx, owner.user_id, owner.org_id)
        found = await store.of_owner(tx, owner.user_id, owner.org_id)
        return [Kept(webhook, watches.get(webhook.id, [])) for webhook in found]

    return await webhooks.db.read_long(unit)


async def shown_to_app(webhooks: Webhooks, found: Sequence[Kept], grant: Grant) -> list[Kept]:
    """Without the names of private repos in what the app did not create: its user never showed them to the app."""
    foreign = [kept for kept in found if not grant.created(kept.webhook)]
    targets = {watch.target_id for kept in foreign for watch in kept.watched if watch.target_id is not None}
    private = await webhooks.db.read(lambda tx: store.private_among(tx, sorted(targets))) if targets else set()

    def hidden(kept: Kept) -> Kept:
        return Kept(kept.webhook, [watch for watch in kept.watched if watch.target_id not in private])

    return [kept if grant.created(kept.webhook) else hidden(kept) for kept in found]


async def troubled(webhooks: Webhooks, user_id: str, most: int) -> tuple[list[Troubled], dict[str | None, int]]:
    """Those that need a user: suspended, or failing for longer than a restart takes; and how many more there are, by
    organization, None for the user's own.
    """
    before = webhooks.clock() - FAILING_FOR

    async def unit(tx: Tx) -> tuple[list[Troubled], dict[str | None, int]]:
        found = await store.troubled(tx, user_id, before, most)
        if len(found) < most:
            return found, {}
        named = Counter(webhook.organization for webhook in found)
        every = await store.count_troubled(tx, user_id, before)
        return found, {name: count - named[name] for name, count in every.items() if count > named[name]}

    return await webhooks.db.read_long(unit)


async def held(tx: Tx, owner: Owner, webhook_id: str) -> Webhook:
    held = await store.hold(tx, webhook_id) if is_id(webhook_id) else None
    if held is None or (held.user_id, held.org_id) != (owner.user_id, owner.org_id):
        raise NotFound(NO_SUCH)
    return held


async def require_grant(tx: Tx, webhook_id: str) -> None:
    """Before it is enabled."""
    if not await is_under_grant(tx, webhook_id):
        raise Conflict(grants.LAPSED)


async def _under(tx: Tx, webhook: Webhook, grant: Grant | None, now: int) -> Webhook:
    if grant is None:
        return webhook
    await store.set_grant(tx, webhook.id, grant, await grants.reach_of(tx, grant, webhook.org_id), now)
    return replace(
        webhook,
        client_id=grant.client_id,
        grant_kind=grant.kind,
        granted_by=grant.user_id,
        granted_scopes=grant.scopes,
    )


def _without_secrets(webhooks: Webhooks, webhook: Webhook, sealed: bytes | None) -> Webhook:
    """An app that takes a webhook over never gets the secret or the key of its former deliveries: it could sign in the
    owner's name (attacks O74, W41).
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


async def _hide_beyond_grant(tx: Tx, webhook_id: str) -> None:
    """A webhook that an app takes over does not go on watching private repos that the grant does not reach: the app
    would learn their names.
    """
    await store.drop_beyond_grant(tx, webhook_id)
    if not await store.watches_of(tx, webhook_id):
        raise Mend("watched", "Name what to watch: this app may not see what this webhook watches now.")


async def _with_watches(tx: Tx, webhook: Webhook, watched: Sequence[Watch], now: int) -> Kept:
    # By the clock of this moment: what went while the unit waited for its turn was not watched.
    bound = [replace(watch, target_id=await store.target_of(tx, watch)) for watch in watched]
    await store.set_watches(tx, webhook.id, bound, now)
    return Kept(webhook, await store.watches_of(tx, webhook.id))


def _overlapping(webhook: Webhook, old: bytes | None, seconds: int, now: int) -> Webhook:
    overlaps = bool(old and seconds)
    return replace(
        webhook, old_secret=old if overlaps else None, old_secret_until=now + seconds * SECOND if overlaps else None
    )


def _secrets(webhook: Webhook) -> tuple[bytes | None, bytes | None, int | None]:
    return webhook.secret, webhook.old_secret, webhook.old_secret_until


def _sealed(webhooks: Webhooks, webhook_id: str, secret: str | None) -> bytes | None:
    return sealed_secret(webhooks.secret, webhook_id, check_secret(secret)) if secret else None
