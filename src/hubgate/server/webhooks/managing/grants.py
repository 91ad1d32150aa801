"""Webhooks that apps created follow the grants of those apps (attack W41).

What a webhook may report on is checked with every event (`entitled/`), so it sends less from the moment a grant is
narrowed, and nothing once the grant has ended, however that came about. The round here tells its owner: a webhook whose
grant has ended is suspended, one whose grant lets it read less than before stays enabled, and a mail says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

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


async def reach_of(tx: Tx, grant: Grant, org_id: str | None) -> frozenset[str]:
    """Where the grant reads private repos and by which scopes, such as `read-repos` at home and `{id}:read-repos` in an
    organization. A webhook of the organization `org_id` reads only there.
    """
    held = _READS.intersection(parse_scopes(grant.scopes))
    if grant.kind == EXCHANGE:
        return held & await store.exchangeable(tx, grant.client_id)
    reach: set[str] = set()
    for row in await store.consented(tx, grant):
        at_home = held.intersection(parse_scopes(row["scopes"]))
        if org_id is None:
            reach |= at_home
        if row["org_id"] is not None and org_id in (None, row["org_id"]):
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
        found = await self.webhooks.db.read_long(lambda tx: store.granted(tx, after, _BATCH))
        await _follow(self.webhooks, found)
        more = len(found) == _BATCH
        self._after = found[-1].id if more else ""
        return more


async def follow_of(webhooks: Webhooks, user_id: str, client_id: str) -> None:
    """At once, after a user changed what an app may do."""
    await _follow(webhooks, await webhooks.db.read_long(lambda tx: store.granted_by(tx, user_id, client_id)))


async def _follow(webhooks: Webhooks, found: Iterable[Webhook]) -> None:
    """Nearly always nothing changed, and nothing is written."""
    for webhook in found:
        if await webhooks.db.read(partial(_change, webhook=webhook)):
            await webhooks.db.write_long(partial(_follow_one, webhooks=webhooks, webhook_id=webhook.id))


@dataclass(frozen=True)
class _Change:
    """`reach` is None where the grant ended."""

    before: frozenset[str]
    reach: frozenset[str] | None


async def _change(tx: Tx, webhook: Webhook) -> _Change | None:
    """None where the grant is as it was."""
    if webhook.grant is None or webhook.state != ENABLED:
        return None
    before = await store.reach(tx, webhook.id)
    if not await entitled.is_under_grant(tx, webhook.id):
        return _Change(before, None)
    after = await reach_of(tx, webhook.grant, webhook.org_id)
    return None if before == after else _Change(before, after)


async def _follow_one(tx: Tx, webhooks: Webhooks, webhook_id: str) -> None:
    now, webhook = webhooks.clock(), await store.hold(tx, webhook_id)
    change = await _change(tx, webhook) if webhook else None
    if webhook is None or change is None:
        return
    if change.reach is None:
        await store.suspend(tx, webhook_id, now)
        await queue.skip_all(tx, webhook_id, SUSPENDED, now)
        await queue.replan(tx, [webhook_id], now)
        await telling.grant_ended(tx, webhooks, webhook)
        return
    await store.set_reach(tx, webhook_id, change.reach)
    if change.before - change.reach:
        await telling.grant_narrowed(tx, webhooks, webhook)


async def is_lapsed(webhooks: Webhooks, webhook: Webhook) -> bool:
    """Whether its app lost the access it was created with."""
    if webhook.grant is None:
        return False
    return not await webhooks.db.read(lambda tx: entitled.is_under_grant(tx, webhook.id))
