"""Reading the delivery log: a page of deliveries, or a delivery with its attempts."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.accounts.model import Owner
from hubgate.server.errors import NotFound
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.activity import store
from hubgate.server.webhooks.activity.store import DeliveryFilter, LoggedDelivery
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management.validation import InvalidField
from hubgate.server.webhooks.model import DELIVERED, STATES, Webhook
from hubgate.server.webhooks.requests.request import SECRET, SIGNATURE, plain_headers, with_webhook

CURSOR = (int,)
NOT_FOUND = "Delivery not found."
# Replaces the secret wherever a request is shown (attack W33).
MASK = "***"
LATEST_COUNT = 10
_MAX_SEQ = 2**62
_HMAC = "v1,"


class LoggedRequest(Struct, frozen=True):
    """The request of the last attempt, with the secret masked; only the current URL if no request was recorded."""

    url: str | None
    headers: dict[str, str]


class FullDelivery(Struct, frozen=True):
    """A delivery with its payload, attempts and request."""

    logged: LoggedDelivery
    # None once the event was deleted, or if the delivery did not succeed and the repo may no longer be read.
    payload: bytes | None
    attempts: Sequence[Row]
    request: LoggedRequest
    # For a replay: whether the original delivery is still stored.
    has_origin: bool
    # The time of the change, which may be long before the delivery; None for a test and once the event was deleted.
    happened_at: int | None


class LatestDeliveries(Struct, frozen=True):
    """The states of a webhook's last deliveries, oldest first, and the time at which the last was created."""

    states: tuple[str, ...]
    at: int


def check_filter(criteria: DeliveryFilter) -> DeliveryFilter:
    if criteria.state and criteria.state not in STATES:
        raise InvalidField("state", f"Choose a state: {', '.join(STATES)}.")
    return criteria


async def page(
    webhooks: Webhooks, webhook: Webhook, criteria: DeliveryFilter, request: PageRequest
) -> Page[LoggedDelivery]:
    before, now = int(request.after[0]) if request.after else _MAX_SEQ, webhooks.clock()
    found = await webhooks.db.read_long(
        lambda tx: store.page(tx, webhook.id, criteria, before, request.fetch_limit, now)
    )
    return page_of(found, request, lambda logged: (logged.seq,))


async def newer(
    webhooks: Webhooks, webhook: Webhook, criteria: DeliveryFilter, after: int, limit: int
) -> list[LoggedDelivery]:
    now = webhooks.clock()
    return await webhooks.db.read_long(lambda tx: store.newer(tx, webhook.id, criteria, after, limit, now))


async def count(webhooks: Webhooks, webhook: Webhook, criteria: DeliveryFilter) -> int:
    now = webhooks.clock()
    return await webhooks.db.read_long(lambda tx: store.count(tx, webhook.id, criteria, now))


async def latest(webhooks: Webhooks, owner: Owner) -> dict[str, LatestDeliveries]:
    """The last deliveries of each webhook of an owner, by webhook id; without webhooks that were never triggered."""
    rows = await webhooks.db.read_long(lambda tx: store.latest(tx, owner.user_id, owner.org_id, LATEST_COUNT))
    found: dict[str, LatestDeliveries] = {}
    for row in rows:
        before = found.get(row["webhook_id"], LatestDeliveries((), 0))
        found[row["webhook_id"]] = LatestDeliveries((*before.states, row["state"]), row["created_at"])
    return found


async def one(
    webhooks: Webhooks, webhook: Webhook, delivery_id: str, visible: VisibleRepos | None = None
) -> FullDelivery:
    """Read a delivery in full. `visible` limits an app to deliveries it may see."""
    now = webhooks.clock()

    async def unit(tx: Tx) -> FullDelivery:
        logged = await store.one(tx, webhook.id, delivery_id, now, visible)
        if logged is None:
            raise NotFound(NOT_FOUND)
        body = await store.body(tx, delivery_id) if await _may_show(tx, webhook, logged) else None
        attempts = await store.attempts(tx, delivery_id)
        payload = None if body is None else with_webhook(body, webhook.id)
        origin = await store.columns_to_replay(tx, webhook.id, logged.origin) if logged.origin else None
        happened_at = await store.happened_at(tx, logged.event_id)
        return FullDelivery(
            logged, payload, attempts, _request(webhook, logged, attempts), origin is not None, happened_at
        )

    return await webhooks.db.read_long(unit)


async def _may_show(tx: Tx, webhook: Webhook, logged: LoggedDelivery) -> bool:
    """Whether to show the payload: if it was delivered, or if the repo may still be read (attack W31)."""
    if logged.state == DELIVERED:
        return True
    row = await store.columns_to_replay(tx, webhook.id, logged.id)
    return row is not None and bool(row["may_read"])


def _request(webhook: Webhook, logged: LoggedDelivery, attempts: Sequence[Row]) -> LoggedRequest:
    # An interrupted attempt has no recorded URL.
    recorded = [row for row in attempts if row["url"]]
    if not recorded:
        return LoggedRequest(webhook.url, {})
    last = recorded[-1]
    headers = plain_headers(logged.id, webhook.id, last["number"], asdict(logged), last["at"])
    if last["signature"].startswith(_HMAC):
        headers[SECRET] = MASK
    return LoggedRequest(last["url"], {**headers, SIGNATURE: last["signature"]})
