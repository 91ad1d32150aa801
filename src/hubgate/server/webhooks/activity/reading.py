"""The list of deliveries of a webhook, and one of them with its tries."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hubgate.server.access.sight import Sight
from hubgate.server.accounts.model import Owner
from hubgate.server.errors import NotFound
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.activity import store
from hubgate.server.webhooks.activity.store import Filter, Logged
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering import store as deliveries
from hubgate.server.webhooks.delivering.request import SECRET, SIGNATURE, plain_headers, with_webhook
from hubgate.server.webhooks.managing.checking import Mend
from hubgate.server.webhooks.model import DELIVERED, NOBODY, STATES, Webhook

CURSOR = (int,)
NO_SUCH = "There is no such delivery."
# In place of a secret wherever a request is shown (attack W33).
MASK = "***"
LATEST = 10
_AFTER_ALL = 2**62
_HMAC = "v1,"


@dataclass(frozen=True)
class Request:
    """As the last try sent it, with the secret masked; before the first, where it will go."""

    url: str | None
    headers: dict[str, str]


@dataclass(frozen=True)
class InFull:
    logged: Logged
    # As it was sent; None once the event was dropped, or if it was not sent and may not be read any more.
    payload: bytes | None
    tries: Sequence[Row]
    request: Request
    # Of a replay: whether what it repeats can still be looked at.
    keeps_origin: bool
    # When the change was made, which may be long before its delivery; None of a test, and once the event was dropped.
    happened_at: int | None


@dataclass(frozen=True)
class Latest:
    """How a webhook's last deliveries ended, the oldest first, and when the last began."""

    states: tuple[str, ...]
    at: int


def check_filter(wanted: Filter) -> Filter:
    if wanted.state and wanted.state not in STATES:
        raise Mend("state", f"One of {', '.join(STATES)}.")
    return wanted


async def page(webhooks: Webhooks, webhook: Webhook, wanted: Filter, asked: PageRequest) -> Page[Logged]:
    before, now = int(asked.after[0]) if asked.after else _AFTER_ALL, webhooks.clock()
    found = await webhooks.db.read_long(lambda tx: store.page(tx, webhook.id, wanted, before, asked.fetch, now))
    return page_of(found, asked, lambda logged: (logged.seq,))


async def newer(webhooks: Webhooks, webhook: Webhook, wanted: Filter, after: int, most: int) -> list[Logged]:
    now = webhooks.clock()
    return await webhooks.db.read_long(lambda tx: store.newer(tx, webhook.id, wanted, after, most, now))


async def count(webhooks: Webhooks, webhook: Webhook, wanted: Filter) -> int:
    now = webhooks.clock()
    return await webhooks.db.read_long(lambda tx: store.count(tx, webhook.id, wanted, now))


async def latest(webhooks: Webhooks, owner: Owner) -> dict[str, Latest]:
    """By webhook; of one that was never triggered there is nothing."""
    rows = await webhooks.db.read_long(lambda tx: store.latest(tx, owner.user_id, owner.org_id, LATEST))
    found: dict[str, Latest] = {}
    for row in rows:
        before = found.get(row["webhook_id"], Latest((), 0))
        found[row["webhook_id"]] = Latest((*before.states, row["state"]), row["created_at"])
    return found


async def one(webhooks: Webhooks, webhook: Webhook, delivery_id: str, sight: Sight | None = None) -> InFull:
    """`sight` is of an app that asks."""
    now = webhooks.clock()

    async def unit(tx: Tx) -> InFull:
        logged = await store.one(tx, webhook.id, delivery_id, now, sight)
        if logged is None:
            raise NotFound(NO_SUCH)
        body = await store.body(tx, delivery_id) if await _may_show(tx, webhook, logged) else None
        tries = await store.tries(tx, delivery_id)
        payload = None if body is None else with_webhook(body, webhook.id)
        origin = await store.origin(tx, webhook.id, logged.origin) if logged.origin else None
        happened_at = await store.happened_at(tx, logged.event_id)
        return InFull(logged, payload, tries, _request(webhook, logged, tries), origin is not None, happened_at)

    return await webhooks.db.read_long(unit)


async def _may_show(tx: Tx, webhook: Webhook, logged: Logged) -> bool:
    """What was delivered is known. Of the rest only what the owner may still read (attack W31)."""
    if logged.state == DELIVERED:
        return True
    row = await store.origin(tx, webhook.id, logged.id)
    return row is not None and await may_know_again(tx, webhook, row)


async def may_know_again(tx: Tx, webhook: Webhook, row: Row) -> bool:
    """Whether the owner may read now what a delivery is about; `row` is of `store.origin`. A test tells of a real repo
    too, of which nothing is known once it is gone.
    """
    if row["repo_id"] == NOBODY:
        return True
    owner_id = row["owner_id"]
    return owner_id is not None and await deliveries.may_know(tx, webhook.id, owner_id, row["repo_id"], row["private"])


def _request(webhook: Webhook, logged: Logged, tries: Sequence[Row]) -> Request:
    # What was sent in a try that was interrupted, nobody wrote down.
    known = [row for row in tries if row["url"]]
    if not known:
        return Request(webhook.url, {})
    last = known[-1]
    headers = plain_headers(logged.id, webhook.id, last["number"], asdict(logged), last["at"])
    if last["signature"].startswith(_HMAC):
        headers[SECRET] = MASK
    return Request(last["url"], {**headers, SIGNATURE: last["signature"]})
