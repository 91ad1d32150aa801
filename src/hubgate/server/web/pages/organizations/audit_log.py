"""The audit log for an organization's admins: filter, table, state of the chain, download."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.audit import read
from hubgate.server.audit.filters import Filter, Term, parse_filter
from hubgate.server.audit.model import Entry, EntryType, ListedEntry, parse_stored_object
from hubgate.server.audit.verify import QuickReport, quick_check
from hubgate.server.edge.routes import Route
from hubgate.server.errors import Unprocessable
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.paging import decode_cursor, encode_cursor
from hubgate.server.web.account_paths import address_of, organization_route
from hubgate.server.web.audit_entries import export
from hubgate.server.web.pages.listing import ROWS
from hubgate.server.web.rendering import Pages
from hubgate.server.web.untrusted_text import clean

_PATH = "/organizations/{name}/settings/audit-log"
_TEMPLATE = "organization/audit_log.html"
_ACTION = Action.ORG_READ_AUDIT_LOG
_OLDER, _NEWER = "older", "newer"


class LogPage(Struct, frozen=True):
    """One page of the log, with cursors if there is more."""

    entries: list[ListedEntry]
    newer: str | None = None
    older: str | None = None


EMPTY_PAGE = LogPage([])


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, organization: Organization) -> Response:
        query = request.query()
        q = query.get("q", "").strip()
        try:
            entry_filter = parse_filter(q)
        except Unprocessable as error:
            return pages.show_errors(
                request, _TEMPLATE, error, "q", **await values(organization, q, Filter(), EMPTY_PAGE, 0)
            )
        shown = await _page(accounts, organization, entry_filter, query.get("cursor", ""))
        total = await read.count(accounts.db, organization.id, entry_filter)
        return pages.page(request, _TEMPLATE, **await values(organization, q, entry_filter, shown, total))

    async def values(
        organization: Organization, q: str, entry_filter: Filter, shown: LogPage, total: int
    ) -> dict[str, Any]:
        here = address_of(_PATH, organization.name)
        return {
            "organization": organization,
            "section": here,
            "q": q,
            "chain": await chain(organization, shown.entries),
            **_values(here, entry_filter, shown, total),
        }

    async def chain(organization: Organization, entries: list[ListedEntry]) -> QuickReport:
        batches = {listed.entry.batch for listed in entries if listed.entry.batch is not None}
        return await accounts.db.read_long(lambda tx: quick_check(tx, accounts.secret, organization.id, batches))

    async def download(request: HubRequest, organization: Organization) -> ASGIApp:
        return export(accounts, organization, parse_filter(request.query().get("q", "")))

    page, summary = Surface.PAGE, "An organization's audit log"
    return [
        organization_route(accounts, "GET", _PATH, show, page, _ACTION, summary),
        organization_route(accounts, "GET", f"{_PATH}/export", download, page, _ACTION, f"{summary}, as a download"),
    ]


async def _page(accounts: Accounts, organization: Organization, entry_filter: Filter, cursor: str) -> LogPage:
    direction, *position = decode_cursor(cursor, (str, int, str)) if cursor else (_OLDER, *read.LIST_START)
    at = (int(position[0]), str(position[1]))
    if direction == _NEWER:
        found = await read.newer(accounts.db, organization.id, entry_filter, at, ROWS + 1)
        if len(found) > ROWS:
            entries = found[1:]
            return LogPage(entries, _cursor(_NEWER, entries[0]), _cursor(_OLDER, entries[-1]))
        # The newest entries are reached: show a full page, including entries added since then.
        at, cursor = read.LIST_START, ""
    found = await read.older(accounts.db, organization.id, entry_filter, at, ROWS + 1)
    entries = found[:ROWS]
    newer = _cursor(_NEWER, entries[0]) if cursor and entries else None
    return LogPage(entries, newer, _cursor(_OLDER, entries[-1]) if len(found) > ROWS else None)


def _cursor(direction: str, listed: ListedEntry) -> str:
    return encode_cursor((direction, *read.list_position(listed)))


def _values(here: str, entry_filter: Filter, shown: LogPage, total: int) -> dict[str, Any]:
    def address(entry_filter: Filter, cursor: str | None = None, path: str = "") -> str:
        query = {"q": str(entry_filter), "cursor": cursor}
        encoded = urlencode({name: value for name, value in query.items() if value})
        return here + path + (f"?{encoded}" if encoded else "")

    return {
        "entries": [_row(listed, address) for listed in shown.entries],
        "chips": [(str(term), address(entry_filter.without(term))) for term in entry_filter.terms],
        "count": f"more than {read.MAX_COUNTED:,}" if total > read.MAX_COUNTED else f"{total:,}",
        "plural": total != 1,
        "newer": address(entry_filter, shown.newer) if shown.newer else "",
        "older": address(entry_filter, shown.older) if shown.older else "",
        "export": address(entry_filter, path="/export"),
    }


def _row(listed: ListedEntry, address: Callable[[Filter], str]) -> dict[str, Any]:
    entry, app_id = listed.entry, _acting_app(listed.entry)
    # App names can contain spaces and are not unique, so the filter uses the id.
    author = Term("app", app_id) if app_id else Term("author", entry.author_name)
    return {
        "created_at": entry.created_at,
        "type": entry.type,
        "author": entry.author_name,
        "gone": listed.author_gone,
        "is_app": bool(app_id),
        "by_author": address(Filter((author,))),
        "refused": _is_refused(entry),
        "message": clean(entry.message),
        "app": clean(_app_or_token(entry)),
        "ip": entry.ip or "",
    }


def _acting_app(entry: Entry) -> str:
    """The id of the app if it acted on its own behalf, not for a user."""
    return str(_app_used(entry).get("clientId", "")) if entry.author_id is None else ""


def _is_refused(entry: Entry) -> bool:
    is_exchange = entry.type == EntryType.OAUTH_TOKEN.value and entry.data is not None
    return is_exchange and parse_stored_object(entry.data or "").get("result") == "refused"


def _app_used(entry: Entry) -> dict[str, Any]:
    return parse_stored_object(entry.oauth) if entry.oauth is not None else {}


def _app_or_token(entry: Entry) -> str:
    if entry.oauth is not None:
        app = _app_used(entry)
        return str(app.get("name") or app.get("clientId") or "")
    if entry.token is not None:
        return f"Token {parse_stored_object(entry.token).get('last4', '')}"
    return ""
