"""Reading a page of events. Each entry is signed when it is read, and the permission to read is checked again."""

from collections.abc import Mapping, Sequence

from msgspec import UNSET, Struct, UnsetType

from hubgate.server.access.identity import Identity
from hubgate.server.access.visibility import VisibleRepos
from hubgate.server.accounts.model import Owner
from hubgate.server.clock import SECOND
from hubgate.server.errors import Conflict, Gone, NotFound
from hubgate.server.ids import is_id
from hubgate.server.secret import CannotOpen
from hubgate.server.storage.database import Row, Tx
from hubgate.server.webhooks.activity.visibility import visible_deliveries
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management.lifecycle import NOT_FOUND
from hubgate.server.webhooks.management.store import find
from hubgate.server.webhooks.management.validation import InvalidField
from hubgate.server.webhooks.model import CANCELLED, FORBIDDEN, SKIPPED
from hubgate.server.webhooks.permissions.grants import grant_of
from hubgate.server.webhooks.requests.request import SIGNATURE, plain_headers, signers, with_webhook
from hubgate.server.webhooks.signing import signed_content
from hubgate.server.webhooks.stream import store

# Instead of a number: before the oldest retained delivery, after the latest one.
OLDEST, LATEST = -2, -1


class StreamedEvent(Struct, frozen=True, omit_defaults=True):
    """A delivery as its webhook's owner reads it. A skipped one has neither headers nor a body, but the reason: quota,
    disabled, suspended, loop, or forbidden if the repo may no longer be read.
    """

    cursor: int
    id: str
    # All headers of the request except X-Webhook-Secret: a reader must not learn the secret (attack O74).
    headers: dict[str, str] | UnsetType = UNSET
    body: str | UnsetType = UNSET
    skipped: str | UnsetType = UNSET


class EventPage(Struct, frozen=True):
    """Events in order, and the cursor to continue after."""

    events: list[StreamedEvent]
    cursor: int


class PageSize(Struct, frozen=True):
    """The maximum number of events in a page, and of bytes in their bodies. A page has at least one event, if any."""

    events: int
    body_bytes: int


class EventsExpired(Gone):
    """The events that follow a cursor are no longer stored."""

    def __init__(self, after: int, oldest: int) -> None:
        super().__init__(f"Events after number {after} are no longer stored. The oldest stored event is {oldest}.")
        self.oldest = oldest


async def open_reader(webhooks: Webhooks, identity: Identity, owner: Owner, webhook_id: str) -> "Reader":
    """The reader of a webhook for a caller who may read the owner's webhooks."""
    if grant_of(webhooks, identity) is None:
        return Reader(webhooks, owner, webhook_id)
    found = await find(webhooks.db, webhook_id, owner.user_id, owner.org_id) if is_id(webhook_id) else None
    if found is None:
        raise NotFound(NOT_FOUND)
    return Reader(webhooks, owner, webhook_id, visible_deliveries(webhooks, identity, found))


class Reader(Struct, frozen=True):
    """Reads the events of one webhook. `visible` limits an app to deliveries that it may see."""

    webhooks: Webhooks
    owner: Owner
    webhook_id: str
    visible: VisibleRepos | None = None

    async def page(self, after: int, size: PageSize) -> EventPage:
        """The events after a number, or after OLDEST or LATEST. Not on the event loop."""
        return await self.webhooks.db.read_long(lambda tx: self._page(tx, after, size))

    async def small_page(self, after: int, size: PageSize) -> EventPage:
        """The same for a few events."""
        return await self.webhooks.db.read(lambda tx: self._page(tx, after, size))

    async def _page(self, tx: Tx, after: int, size: PageSize) -> EventPage:
        owner, webhook_id = self.owner, self.webhook_id
        found = await store.webhook(tx, webhook_id, owner.user_id, owner.org_id) if is_id(webhook_id) else None
        if found is None:
            raise NotFound(NOT_FOUND)
        last: int = found["last_seq"]
        if after == LATEST:
            return EventPage([], last)
        if after > last:
            # A cursor of another webhook, or from before a backup was restored: events would be lost silently.
            raise InvalidField("after", f"The latest number of this webhook is {last}.")
        rows = await store.entries(tx, webhook_id, max(after, 0), size.events, self.visible)
        start = after if after >= 0 else rows[0]["seq"] - 1 if rows else last
        # Retention can leave gaps: a delivery that is retried for days outlives later ones.
        following = [row for number, row in enumerate(rows, start + 1) if row["seq"] == number]
        if not following and start < last:
            raise EventsExpired(start, rows[0]["seq"] if rows else last + 1)
        selected = _limited(following, size.body_bytes)
        bodies = await store.bodies(tx, [row["id"] for row in selected if not _skipped(row)])
        cursor = selected[-1]["seq"] if selected else start
        return EventPage(self._events(found, selected, bodies), cursor)

    def _events(self, webhook: Row, rows: Sequence[Row], bodies: Mapping[str, bytes]) -> list[StreamedEvent]:
        now = self.webhooks.clock()
        try:
            sign, sign_old, _ = signers(
                self.webhooks.secret, self.webhook_id, webhook["secret"], webhook["old_secret"], webhook["private_key"]
            )
        except CannotOpen:
            raise Conflict("The secret of this webhook cannot be decrypted. Set another one.") from None
        is_rotating = sign_old is not None and (webhook["old_secret_until"] or 0) > now
        events = []
        for row in rows:
            if reason := _skipped(row):
                events.append(StreamedEvent(row["seq"], row["id"], skipped=reason))
                continue
            body = with_webhook(bodies[row["id"]], self.webhook_id)
            content = signed_content(row["id"], now // SECOND, body)
            signatures = [sign(content), *([sign_old(content)] if sign_old and is_rotating else [])]
            about = {name: row[name] for name in ("repo_seq", "depth", "is_test")}
            headers = plain_headers(row["id"], self.webhook_id, max(row["attempts"], 1), about, now)
            headers[SIGNATURE] = " ".join(signatures)
            events.append(StreamedEvent(row["seq"], row["id"], headers, body.decode()))
        return events


def _skipped(row: Row) -> str:
    """Why an entry is shown without its content; empty if it is shown."""
    if row["state"] in (SKIPPED, CANCELLED):
        return row["reason"] or str(row["state"])
    return "" if row["may_read"] and row["size"] is not None else FORBIDDEN


def _limited(rows: Sequence[Row], max_bytes: int) -> list[Row]:
    """The first rows, up to this size together, but at least one."""
    selected: list[Row] = []
    total = 0
    for row in rows:
        total += 0 if _skipped(row) else row["size"]
        if selected and total > max_bytes:
            break
        selected.append(row)
    return selected
