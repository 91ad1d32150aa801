"""A dry run in the form of a webhook: matching events of the last seven days, and watched names that do not exist."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.access.visibility import visible_repos
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management.lifecycle import StoredWebhook, WebhookRequest
from hubgate.server.webhooks.management.validation import check_watched
from hubgate.server.webhooks.matching import dry_run
from hubgate.server.webhooks.matching.dry_run import MAX_EVENTS, DryRun
from hubgate.server.webhooks.matching.store import MatchingEvent
from hubgate.server.webhooks.matching.watched_names import unknown_names
from hubgate.server.webhooks.model import Watch

_SHOWN = 10
# After saving.
UNKNOWN_NAMES = "Some watched names were not found: see Events."


class Preview(Struct, frozen=True):
    # The newest events.
    events: Sequence[MatchingEvent]
    total: int
    unknown: Sequence[Watch]
    # A secret is not sent back in the form.
    secret_was_typed: bool

    @property
    def is_cut(self) -> bool:
        return self.total == MAX_EVENTS


async def preview_new(
    webhooks: Webhooks, context: OwnerContext, settings: WebhookRequest, *, secret_was_typed: bool
) -> Preview:
    result = await dry_run.of_new(webhooks, context.owner, settings)
    return await _preview(webhooks, context, settings, result, secret_was_typed)


async def preview_changes(
    webhooks: Webhooks, context: OwnerContext, stored: StoredWebhook, settings: WebhookRequest
) -> Preview:
    return await _preview(webhooks, context, settings, await dry_run.of_update(webhooks, stored, settings), False)


async def _preview(
    webhooks: Webhooks, context: OwnerContext, settings: WebhookRequest, result: DryRun, secret_was_typed: bool
) -> Preview:
    watched = check_watched(settings.watched) if settings.watched else []
    unknown = await unknown_to(webhooks, context, watched)
    return Preview(result.events[:_SHOWN], len(result.events), unknown, secret_was_typed)


async def unknown_to(webhooks: Webhooks, context: OwnerContext, watched: Sequence[Watch]) -> list[Watch]:
    """Watched names that the signed-in user cannot find."""
    return await unknown_names(webhooks, watched, visible_repos(context.identity))
