"""Which deliveries of a webhook a caller may read."""

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import VisibleRepos, visible_repos
from hubgate.server.errors import Forbidden
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.model import Webhook
from hubgate.server.webhooks.permissions.grants import grant_of


def visible_deliveries(webhooks: Webhooks, identity: Identity, webhook: Webhook) -> VisibleRepos | None:
    """The repos whose deliveries the caller may read; None for all. Payloads reveal private repos, so an app may read
    only deliveries of webhooks that it created, for repos that it may see.
    """
    grant = grant_of(webhooks, identity)
    if grant is None:
        return None
    if not grant.manages(webhook):
        raise Forbidden(f"This {grant.noun} did not create this webhook, so it cannot see its deliveries.")
    return visible_repos(identity)
