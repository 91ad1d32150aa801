"""Live exchanged tokens: admins of the organization list and revoke them, members list their own."""

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.oauth.apps.management import lock_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.model import TokenFilter
from hubgate.server.oauth.exchange.store import ActiveToken, MemberTokens
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (int, str)
MEMBER_CURSOR = (str,)
_LATEST = (2**62, "")
_ALL = TokenFilter()


async def of_app(
    oauth: OAuth, app: App, page_request: PageRequest, token_filter: TokenFilter = _ALL
) -> Page[ActiveToken]:
    """Live tokens of an app, newest first."""
    before, now = _before(page_request), oauth.clock()
    found = await oauth.db.read_long(
        lambda tx: store.of_app(tx, app, token_filter, before, now, page_request.fetch_limit)
    )
    return page_of(found, page_request, _cursor)


async def by_member(oauth: OAuth, app: App, page_request: PageRequest) -> Page[MemberTokens]:
    """Members for whom an app has live tokens, by name."""
    after, now = page_request.last_shown(), oauth.clock()
    found = await oauth.db.read_long(lambda tx: store.by_member(tx, app, after, now, page_request.fetch_limit))
    return page_of(found, page_request, lambda member: (member.user_name.lower(),))


async def of_member(oauth: OAuth, user_id: str, page_request: PageRequest) -> Page[ActiveToken]:
    """Live tokens for a user, of all organizations' apps, newest first."""
    before, now = _before(page_request), oauth.clock()
    found = await oauth.db.read_long(lambda tx: store.of_member(tx, user_id, before, now, page_request.fetch_limit))
    return page_of(found, page_request, _cursor)


def _before(page_request: PageRequest) -> tuple[int, str]:
    return (int(page_request.after[0]), str(page_request.after[1])) if page_request.after else _LATEST


def _cursor(token: ActiveToken) -> tuple[int, str]:
    return token.created_at, token.id


async def count(oauth: OAuth, app: App, token_filter: TokenFilter = _ALL) -> int:
    now = oauth.clock()
    return await oauth.db.read_long(lambda tx: store.count(tx, app, token_filter, now))


async def revoke(oauth: OAuth, app: App, token_filter: TokenFilter, actor: Actor) -> int:
    """Revoke tokens and return how many. NotFound if a single token was named and does not exist."""
    now = oauth.clock()

    async def unit(tx: Tx) -> int:
        await lock_app(tx, app, actor)
        return await revoke_in(tx, app, token_filter, actor, now)

    revoked = await oauth.db.write_long(unit)
    if not revoked and token_filter.token_id is not None:
        raise NotFound("Token not found, or it has expired.")
    return revoked


async def revoke_in(tx: Tx, app: App, token_filter: TokenFilter, actor: Actor, now: int) -> int:
    revoked = await store.revoke(tx, app, token_filter, now)
    if revoked:
        text = f"revoked {revoked:,} exchanged token{'' if revoked == 1 else 's'} of the app {app.name}"
        data = {"clientId": app.client_id, "name": app.name, "ended": revoked, **_filter_data(token_filter)}
        await record(tx, app.org_id or "", EntryType.REVOKE_TOKENS, text, actor, now, data)
    return revoked


def _filter_data(token_filter: TokenFilter) -> dict[str, str]:
    """The filter as audit data; times in the format of the audit log."""
    data = {"tokenId": token_filter.token_id, "userId": token_filter.user_id}
    data |= {
        name: iso(value)
        for name, value in (("since", token_filter.since), ("until", token_filter.until))
        if value is not None
    }
    return {name: value for name, value in data.items() if value is not None}
