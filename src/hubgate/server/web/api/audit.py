"""The audit log for programs: an export, newest first, and the chain for clients that follow or verify it."""

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.audit import read
from hubgate.server.audit.chain import exact_time
from hubgate.server.audit.filters import parse_filter
from hubgate.server.audit.model import Batch
from hubgate.server.edge.routes import Handler, Query, Route
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.paging import Key, encode_cursor, parse_page
from hubgate.server.web.account_paths import organization_route
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, linked_response
from hubgate.server.web.audit_entries import AuditEntry, describe, export

PATH = "/api/organizations/{name}/audit-log"
MAX_BATCHES = 100

_ACTION = Action.ORG_READ_AUDIT_LOG
_FILTER = Query(
    "q", "Filters such as `author:ada type:org.add_user ip:192.0.2.1 app:CLIENT_ID`, and words of the message."
)
_REFUSALS = {
    **NO_TOKEN,
    403: ("You are not an admin of the organization, or the token belongs to an app.", None),
}


class AuditBatch(msgspec.Struct, rename="camel"):
    """A batch of entries in the hash chain. docs/audit.md describes its hash."""

    organization: str
    seq: int
    sealed_at: str
    entries: int
    hash: str
    # In the order of sealing; empty once retention has deleted the entries.
    ids: list[str]
    dropped_at: str | UnsetType = UNSET


def routes(accounts: Accounts) -> list[Route]:
    async def export_all(request: HubRequest, organization: Organization) -> ASGIApp:
        return export(accounts, organization, parse_filter(request.query().get("q", "")))

    async def follow(request: HubRequest, organization: Organization) -> ASGIApp:
        query = request.query()
        page_request, entry_filter = parse_page(query, (int, int)), parse_filter(query.get("q", ""))
        after = (int(page_request.after[0]), int(page_request.after[1])) if page_request.after else read.CHAIN_START
        found = await read.follow(accounts.db, organization.id, entry_filter, after, page_request.limit)
        return _respond(request, [describe(listed) for listed in found.entries], found.end)

    async def batches(request: HubRequest, organization: Organization) -> ASGIApp:
        page_request = parse_page(request.query(), (int,))
        after = int(page_request.after[0]) if page_request.after else 0
        found = await read.batches(accounts.db, organization.id, after, min(page_request.limit, MAX_BATCHES))
        end = found[-1][0].seq if found else after
        return _respond(request, [_describe_batch(batch, ids) for batch, ids in found], (end,))

    def _respond(request: HubRequest, items: Sequence[object], end: Key) -> JsonResponse:
        """Respond with a Link header even at the end: clients store its address and continue from there later."""
        return linked_response(request, accounts.base_url, items, encode_cursor(end))

    def route(
        path: str, handler: Handler[Organization], summary: str, query: tuple[Query, ...], meaning: str, shape: object
    ) -> Route:
        answers = {200: (meaning, shape), **_REFUSALS}
        return organization_route(
            accounts, "GET", PATH + path, handler, Surface.API, _ACTION, summary, query=query, answers=answers
        )

    return [
        route(
            "/export",
            export_all,
            "An organization's audit log, newest first",
            (_FILTER,),
            f"At most {read.MAX_EXPORTED:,} entries, as a download.",
            list[AuditEntry],
        ),
        route(
            "",
            follow,
            "Follow an organization's audit log",
            (_FILTER, *PAGING),
            "Sealed entries in the order of the chain, each exactly once. The Link header is always present.",
            list[AuditEntry],
        ),
        route(
            "/batches",
            batches,
            "The chain that seals an organization's audit log",
            PAGING,
            f"In order, at most {MAX_BATCHES} at once. The Link header is always present.",
            list[AuditBatch],
        ),
    ]


def _describe_batch(batch: Batch, ids: list[str]) -> AuditBatch:
    return AuditBatch(
        organization=batch.org_id,
        seq=batch.seq,
        sealed_at=exact_time(batch.sealed_at),
        entries=batch.entries,
        hash=batch.hash.hex(),
        ids=ids,
        dropped_at=UNSET if batch.dropped_at is None else exact_time(batch.dropped_at),
    )
