"""Webhooks that apps created follow the grants of those apps (attack W41).

What a webhook may report on is checked with every event (`entitled/`), so it sends less from the moment a grant is
narrowed, and nothing once the grant has ended, however that came about. The round here tells its owner: a webhook whose
grant has ended is suspended, one whose grant lets it read less than before stays enabled, and a mail says so.
"""

from dataclasses import dataclass

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity, Kind
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Tx
from hubgate.server.webhooks import telling
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as queue
from hubgate.server.webhooks.entitled import store as entitled
from hubgate.server.webhooks.managing import store
from hubgate.server.webhooks.model import CONSENT, ENABLED, EXCHANGE, SUSPENDED, Grant, Webhook

EVERY_SECONDS = 60.0
_BATCH = 100
_SEE = Action.REPO_SEE.rule
_READS = frozenset(_SEE.scopes + _SEE.created)
LAPSED = "The app that created this webhook no longer has access. Allow the app again, or delete the webhook."


def grant_of(webhooks: Webhooks, identity: Identity) -> Grant | None:
    """What a webhook of this caller is created under. Sessions, personal tokens and the hub's own command lines create
    as the user.
    """
    client_id, user_id = identity.client_id, identity.user_id
    if client_id is None or user_id is None or client_id in webhooks.cli_client_ids:
        return None
    kind = EXCHANGE if identity.kind is Kind.EXCHANGED else CONSENT
    return Grant(client_id, kind, user_id, join_scopes(identity.scopes))


async def reach_of(tx: Tx, grant: Grant) -> frozenset[str]:
    """Where the grant reads private repos and by which scopes, such as `read-repos` at home and `{id}:read-repos` in an
    organization.
    """
    held = _READS.intersection(parse_scopes(grant.scopes))
    if grant.kind == EXCHANGE:
        return held & await store.exchangeable(tx, grant.client_id)
    reach: set[str] = set()
    for row in await store.consented(tx, grant):
        at_home = held.intersection(parse_scopes(row["scopes"]))
        reach |= at_home
        if row["org_id"] is not None:
            reach |= {f"{row['org_id']}:{name}" for name in at_home.intersection(parse_scopes(row["org_scopes"]))}
    return frozenset(reach)


@dataclass
class FollowGrants:
    """The round over all of them, some at a time."""

    webhooks: Webhooks
    _after: str = ""

    async def step(self) -> bool:
        """Whether there are more in this round."""
        after = self._after
        ids = await self.webhooks.db.read_long(lambda tx: store.granted(tx, after, _BATCH))
        for webhook_id in ids:
            await _follow(self.webhooks, webhook_id)
        more = len(ids) == _BATCH
        self._after = ids[-1] if more else ""
        return more


async def follow_of(webhooks: Webhooks, user_id: str, client_id: str) -> None:
    """At once, after a user changed what an app may do."""
    for webhook_id in await webhooks.db.read_long(lambda tx: store.granted_by(tx, user_id, client_id)):
        await _follow(webhooks, webhook_id)


async def _follow(webhooks: Webhooks, webhook_id: str) -> None:
    now = webhooks.clock()

    async def unit(tx: Tx) -> None:
        webhook = await store.hold(tx, webhook_id)
        if webhook is None or webhook.grant is None or webhook.state != ENABLED:
            return
        if not await entitled.is_under_grant(tx, webhook_id):
            await store.suspend(tx, webhook_id, now)
            await queue.skip_all(tx, webhook_id, SUSPENDED, now)
            await telling.grant_ended(tx, webhooks, webhook)
            return
        before, after = await store.reach(tx, webhook_id), await reach_of(tx, webhook.grant)
        if before != after:
            await store.set_reach(tx, webhook_id, after)
        if before - after:
            await telling.grant_narrowed(tx, webhooks, webhook)

    await webhooks.db.write_long(unit)


async def is_lapsed(webhooks: Webhooks, webhook: Webhook) -> bool:
    """Whether its app lost the access it was created with."""
    if webhook.grant is None:
        return False
    return not await webhooks.db.read(lambda tx: entitled.is_under_grant(tx, webhook.id))
